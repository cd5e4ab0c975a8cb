"""What really answers to a role: its own model, its fallback, or nothing."""

from __future__ import annotations

from typing import Literal, TypedDict

from models.plan import Placement

READY = "READY"


class Answering(TypedDict):
    """Plain values, for outputs and routes."""

    state: Literal["serving", "not loaded"]
    placement: Literal["primary", "fallback"]
    """Whose endpoint and entry it is."""
    model: str
    """Name in the catalog of the model that answers, or would."""
    reason: str
    """Why it is not the role's own model, or why nothing answers; empty where all is well."""


def answering(
    first: Placement, fallback: Placement | None, state: str, reason: str, instead: str
) -> Answering:
    """What answers.

    Args:
        first: the role's own load.
        fallback: what is declared instead of it, if anything is.
        state: of the first.
        reason: why that does not serve, where it is known.
        instead: the fallback's state.
    """
    if state == READY or fallback is None:
        serves = state == READY
        return {
            "state": "serving" if serves else "not loaded",
            "placement": "primary",
            "model": first.model,
            "reason": "" if serves else reason or f"{first.model} is {state or 'not loaded'}",
        }
    return {
        "state": "serving" if instead == READY else "not loaded",
        "placement": "fallback",
        "model": fallback.model,
        "reason": reason or f"{first.model} is {state or 'not loaded'}",
    }


def stand_in(role: str, first: Placement, known: Answering) -> str:
    """A line for a person about a role that is not on its own model; empty where it is."""
    if known["placement"] == "primary":
        return ""
    fallback = f"{role}: fallback {known['model']}"
    if known["state"] == "serving":
        said = f"{fallback} serves instead of {first.model}"
    else:
        said = f"{fallback} is to serve instead of {first.model} and is not loaded"
    return f"{said}: {known['reason']}"
