"""What `berth status` says of roles that are not on their own model."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
from rich.console import Console

from components.providers.triton_client import ModelState
from models.plan import Plan
from ops.live import LiveHost, LiveInstance
from ops.show import _models, show, stand_ins
from tests.declarations import SECTIONS, plan_of

ENTRIES = {"big": ("triton@wide-01", "shop.big"), "small": ("triton@0", "shop.small")}
WELL = ("beta", "triton@b0", "shop.small")


def planned(**role: Any) -> Plan:
    sections: dict[str, Any] = copy.deepcopy(SECTIONS)
    for name in ("architect", "worker"):
        fallback = {"model": "small", "instance": "triton@0"}
        sections["demo"]["roles"][name] |= {"fallback": fallback} | role
    return plan_of(sections | {"images": {"vllm": "vllm@sha256:bb"}})


def live(**states: str) -> dict[str, LiveHost]:
    """Hosts on which models are in these states, and whatever else is declared is well."""
    held = {on: LiveInstance({}) for on, _ in ENTRIES.values()}
    for model, state in states.items():
        on, name = ENTRIES[model]
        held[on] = LiveInstance({name: ModelState(state, "unloaded")})
    host, on, name = WELL
    return {
        "alpha": LiveHost(None, held),
        host: LiveHost(None, {on: LiveInstance({name: ModelState("READY")})}),
    }


def reasons() -> dict[str, str]:
    return {"architect": "it does not [answer]", "worker": "it does not [answer]"}


def never() -> dict[str, str]:
    raise AssertionError("nobody has to be asked")


def shown(plan: Plan, hosts: dict[str, LiveHost]) -> str:
    printed = io.StringIO()
    show(Console(file=printed, width=250), plan, hosts, reasons)
    return printed.getvalue()


def test_a_role_on_its_fallback_is_told_in_a_line_with_the_reason() -> None:
    hosts = live(big="UNAVAILABLE", small="READY")
    line = "architect: fallback small serves instead of big: it does not [answer]"
    assert stand_ins(planned(), hosts, reasons) == [line, line.replace("architect", "worker")]
    assert line in shown(planned(), hosts).splitlines()


def test_where_the_stacks_state_is_out_of_reach_the_server_is_quoted() -> None:
    (first, _) = stand_ins(planned(), live(big="UNAVAILABLE", small="READY"))
    assert first == "architect: fallback small serves instead of big: unloaded"


def test_nothing_is_said_and_nobody_asked_while_roles_are_on_their_own_models() -> None:
    assert stand_ins(planned(), live(big="READY"), never) == []
    assert "stands by" in shown(planned(), live(big="READY"))


def test_a_fallback_that_is_not_there_either_is_said_to_be_missing() -> None:
    (first, _) = stand_ins(planned(), live(), dict)
    assert "small is to serve instead of big and is not loaded" in first


@pytest.mark.parametrize(
    ("states", "served"),
    [
        ({"big": "READY"}, True),
        ({"big": "UNAVAILABLE", "small": "READY"}, True),
        ({"big": "UNAVAILABLE", "small": "UNAVAILABLE"}, False),
        ({}, False),
    ],
)
def test_a_role_is_served_by_its_model_or_by_its_fallback(
    states: dict[str, str], served: bool
) -> None:
    missing = _models(planned(), live(**states))[1]
    assert missing is not served


def test_the_roles_table_names_what_answers() -> None:
    said = shown(planned(), live(big="UNAVAILABLE", small="READY"))
    roles = said[said.index("Roles") :]
    assert "http://127.0.0.1:8000/v2/models/shop.small" in roles
    assert "shop.big" not in roles
