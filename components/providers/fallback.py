"""What comes of a model that does not serve: its fallback's turn, or nobody's.

A model with a fallback that fails ends in state FAILED, with everything of it gone, and the run
goes on; its fallback's resource then loads. It is tried again only when something of it has
changed, or when a person asks for it: each try takes its fallback's GPUs, and its clients' answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from components.providers import gateway_routes, ledger
from components.providers.eviction import evict, serves_last
from components.providers.load_failure import NotServing
from components.providers.plain_refusals import same
from components.providers.progress import say
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host
from models.refusal import Refusal

READY, FAILED, STANDBY = "READY", "FAILED", "STANDBY"
ALWAYS = "always"
"""`wanted` of a model that is nobody's fallback."""
INPUTS = ("roles", "fallback", "wanted")
"""What the resources of models have for all this."""
_SERVES = {"state": READY, "reason": "", "attempt": ""}
STANDS_BY = {"state": STANDBY, "reason": "", "attempt": "", "since": ""}


def serves_now() -> dict[str, Any]:
    """What a model is that has just come to serve."""
    return {**_SERVES, "since": now()}


def serves_on(olds: Mapping[str, Any]) -> dict[str, Any]:
    """What a model is that went on serving."""
    return {**_SERVES, "since": olds.get("since") or now()}


def now() -> str:
    """UTC, to the millisecond: another one for each try and for each load."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def settled(olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    """Whether a model is in a state that asks for nothing more."""
    state = olds.get("state")
    if state == FAILED:
        return bool(news.get("fallback"))
    if state == STANDBY:
        return stands_by(news)
    return state == READY and not stands_by(news)


def stands_by(props: Mapping[str, Any]) -> bool:
    """Whether it is a fallback that is not needed now."""
    return props.get("wanted") == ""


def stays_failed(olds: Mapping[str, Any], news: Mapping[str, Any], tried: Iterable[str]) -> bool:
    """Whether a model that failed is left at that: nothing that is `tried` with it has changed."""
    if olds.get("state") != FAILED or not news.get("fallback"):
        return False
    return all(same(olds.get(key), news.get(key)) for key in tried)


def as_before(olds: Mapping[str, Any]) -> dict[str, Any]:
    """What an update that is only noted leaves as it is."""
    return {key: olds.get(key, "") for key in STANDS_BY}


def failed(props: Mapping[str, Any], refusal: NotServing) -> dict[str, Any]:
    """What a model that does not serve comes to.

    Raises:
        Refusal: it has no fallback; it says whether anything serves its roles now.
    """
    if "claim_name" in props:  # A state of before there were claims has none.
        on_host(
            props["ssh"],
            lambda session: gateway_routes.tell(
                session, props["holder"], props["claim_name"], one_line(refusal)
            ),
        )
    if not props.get("fallback"):
        raise _told(props, refusal) from refusal
    say(str(refusal))
    return {"state": FAILED, "reason": one_line(refusal), "attempt": now(), "since": ""}


def one_line(refusal: Refusal) -> str:
    """A refusal as a reason: its cause, and where it stands."""
    where = f"{refusal.at}: " if refusal.at else ""
    return " ".join(f"{where}{refusal.cause}".split())


async def make_room(session: Session, props: Mapping[str, Any]) -> None:
    """Unload the fallback where it is on GPUs that its model is about to be tried on.

    Raises:
        Refusal: it does not go.
    """
    if not props.get("fallback"):
        return
    record = ledger.record_of(props["fallback"])
    if {gpu.uuid for gpu in record.gpus} & set(props["gpus"]):
        for refusal in (await evict(session, [record])).values():
            raise refusal


async def keep_the_last(session: Session, props: Mapping[str, Any]) -> None:
    """See that a model whose roles have moved on goes only once something else serves them.

    Raises:
        Refusal: nothing does; then it stays, and its routes with it.
    """
    own = await ledger.claims_of(session, props["holder"])
    mine = [each for each in own if each.leaving and each.name == props["claim_name"]]
    for record in mine:
        if await serves_last(session, record, own):
            raise Refusal(
                f"{record.model} on {record.instance} is kept: what takes its place for "
                f"{' and '.join(record.roles)} is not loaded",
                consequence="It goes on serving, and holds its GPUs.",
                fix="mend what took its place, and run this again: it goes once that serves.",
            )


def _told(props: Mapping[str, Any], refusal: Refusal) -> Refusal:
    roles = sorted(props.get("roles") or [])
    if not roles:
        return refusal
    try:
        said = on_host(props["ssh"], lambda session: _left_serving(session, props, roles))
    except Refusal:
        return refusal  # The host cannot be asked: the first reason is the one to tell.
    told = f"{refusal.consequence}\n  {said}"
    return Refusal(refusal.cause, consequence=told, fix=refusal.fix, at=refusal.at)


async def _left_serving(session: Session, props: Mapping[str, Any], roles: list[str]) -> str:
    names = " and ".join(roles)
    own = await ledger.claims_of(session, props["holder"])
    for record in own:
        went_on = record.leaving and set(roles) & set(record.roles)
        if went_on and await serves_last(session, record, own):
            return f"{record.model} on {record.instance} goes on serving {names}."
    return f"Nothing serves {names} now, and no `fallback` is declared."
