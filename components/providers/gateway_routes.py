"""A demo's routes in a host's gateway, which `berth-host` writes there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.providers import berth_host
from components.providers.progress import say
from components.providers.ssh import Session
from models.refusal import Refusal

REPLACED = "its model is being replaced"
LOADING = "its model is being loaded"


async def change(session: Session, action: str, payload: Mapping[str, Any]) -> None:
    """`declare`, `put` or `remove`; see `host/routes.py` for what each asks for.

    Raises:
        Refusal: the host has no gateway, or that cannot take it.
    """
    doing = f"{action} routes of demo {payload['demo']}"
    answer = await berth_host.ask(session, "routes", action, payload=payload, doing=doing)
    if answer is None and action != "remove":
        raise Refusal(
            f"{berth_host.PROGRAM} is not there, so this host has no gateway either",
            consequence=f"Clients cannot reach demo {payload['demo']}.",
            fix="bring the host's own stack up first.",
        )
    _tell_of_those_left(answer, str(payload.get("role")))


async def close(
    session: Session, holder: str, load: str, reason: str, drain_s: float | None = None
) -> bool:
    """Send no more requests to a load that is about to go, or whose canary is about to look at it;
    those under way are waited for.

    Args:
        holder: who claims it: `project/stack/demo`.
        load: its claim's name.
        reason: what clients are told.
        drain_s: how long to wait, in seconds; None: as the gateway declares.

    Returns:
        Whether clients came by the gateway and none is left: nobody else uses it then.

    Raises:
        Refusal: the gateway cannot be changed.
    """
    payload: dict[str, Any] = {"demo": holder.rpartition("/")[2], "load": load, "reason": reason}
    if drain_s is not None:
        payload["drain_s"] = drain_s
    answer = await berth_host.ask(
        session, "routes", "close", payload=payload, doing=f"closing the routes to {load}"
    )
    _tell_of_those_left(answer, load)
    return bool(answer and answer.get("closed") and not answer.get("left"))


async def close_for_canary(session: Session, holder: str, load: str) -> bool:
    """As `close`, of a load that is to come. One that cannot be closed keeps no model from loading:
    whether a route can be opened again is for its own resource to see."""
    try:
        return await close(session, holder, load, LOADING)
    except Refusal as refusal:
        say(str(refusal))
        return False


async def tell(session: Session, holder: str, load: str, reason: str) -> None:
    """Let clients know why a load does not serve. Whether that works changes nothing else."""
    try:
        await close(session, holder, load, reason, 0)
    except Refusal as refusal:
        say(str(refusal))


async def show(session: Session, demo: str) -> dict[str, Any]:
    """What the host has of a demo: {"there", "routes", "adapter"}.

    Raises:
        Refusal: the host cannot be reached.
    """
    answer = await berth_host.ask(
        session, "routes", "show", payload={"demo": demo}, doing=f"reading routes of {demo}"
    )
    return answer or {"there": False, "routes": {}, "adapter": {}}


def _tell_of_those_left(answer: Mapping[str, Any] | None, what: str) -> None:
    if answer and answer.get("left"):
        say(f"{what}: {answer['left']} requests were still under way when the time was over")
