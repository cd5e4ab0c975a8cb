"""What is said of who answers to a role."""

from __future__ import annotations

import copy

from models.answering import answering, stand_in
from models.plan import Placement
from tests.declarations import SECTIONS, plan_of


def loads() -> tuple[Placement, Placement]:
    """Architect's own load, and its fallback."""
    sections = copy.deepcopy(SECTIONS)
    for role in ("architect", "worker"):
        fallback = {"model": "small", "instance": "triton@0"}
        sections["demo"]["roles"][role]["fallback"] = fallback
    plan = plan_of(sections)
    first = plan.roles["architect"]
    fallback_load = plan.fallback_of(first)
    assert fallback_load is not None
    return first, fallback_load


FIRST, FALLBACK = loads()


def test_a_role_on_its_own_model_has_nothing_to_say() -> None:
    known = answering(FIRST, FALLBACK, "READY", "", "STANDBY")
    assert known == {"state": "serving", "placement": "primary", "model": "big", "reason": ""}
    assert stand_in("architect", FIRST, known) == ""


def test_a_fallback_that_serves_is_named_with_the_reason() -> None:
    known = answering(FIRST, FALLBACK, "FAILED", "it does not answer", "READY")
    assert (known["state"], known["placement"], known["model"]) == ("serving", "fallback", "small")
    assert stand_in("architect", FIRST, known) == (
        "architect: fallback small serves instead of big: it does not answer"
    )


def test_a_fallback_that_does_not_serve_either_is_not_called_serving() -> None:
    known = answering(FIRST, FALLBACK, "FAILED", "it does not answer", "")
    assert known["state"] == "not loaded"
    assert "small is to serve instead of big and is not loaded" in stand_in("r", FIRST, known)


def test_without_a_fallback_the_roles_own_model_is_what_is_not_loaded() -> None:
    known = answering(FIRST, None, "", "", "")
    assert (known["state"], known["placement"]) == ("not loaded", "primary")
    assert known["reason"] == "big is not loaded"
