"""A server of one model's own, from its unit's start to the canary's last word."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from components.providers import engine_log, gateway_routes, served_unit
from components.providers.engine_canary import canary
from components.providers.gpu_memory import OVER_MIB, Memory, beyond_claim, read_memory
from components.providers.load_failure import load_refused
from components.providers.model_server import SOON_S
from components.providers.progress import progress, say
from components.providers.ssh import Session
from components.providers.ssh_tunnel import tunnel
from components.providers.triton_refusals import takes_too_much
from engines import engine
from engines.protocol import Engine, Patience, Upstream
from models.refusal import Refusal

GLANCE_S = 3.0
"""Bound on each question of a `read`, in seconds: a refresh asks for every model."""
LOOKS = 5
"""At the server, for one at its unit."""
READY, STARTING = "READY", "STARTING"


@dataclass(frozen=True)
class Served:
    """A ServedModel's properties, with the numbers as what they are."""

    unit: str
    engine: str
    port: int
    model: str
    gpus: list[str]
    claim_mib: int
    holder: str
    claim_name: str
    load_timeout_s: float
    unload_timeout_s: float
    canary_timeout_s: float

    @classmethod
    def of(cls, props: Mapping[str, Any]) -> Served:
        """From a resource's properties."""
        return cls(
            unit=props["unit"],
            engine=props["engine"],
            port=int(props["port"]),
            model=props["model"],
            gpus=list(props["gpus"]),
            claim_mib=int(props["claim_mib"]),
            holder=props["holder"],
            claim_name=props["claim_name"],
            load_timeout_s=float(props["load_timeout_s"]),
            unload_timeout_s=float(props["unload_timeout_s"]),
            canary_timeout_s=float(props["canary_timeout_s"]),
        )


async def nothing(_session: Session) -> None:
    """No room has to be made."""


async def await_answers(
    session: Session, served: Served, room: Callable[[Session], Awaitable[None]] = nothing
) -> None:
    """Wait for the server, then see it through the canary, behind a closed route.

    The route may be open still: the unit was stopped by hand, or systemd has started it again since
    it was looked at. Whoever asks for it opens the route, as another moment of coming to serve.

    A server that fails is stopped: systemd would start it over and over, and each time it would
    take its GPUs anew.

    Args:
        room: done at the last moment before it is started, or waited for.

    Raises:
        NotServing: it ends, is not up in `load_timeout_s`, fails the canary, or takes more than it
            has claimed.
        Refusal: it does not stop then, or its memory is not back.
    """
    begun, running, quiet = await asyncio.gather(
        engine_log.cursor(session, served.unit),
        served_unit.runs(session, served.unit),
        gateway_routes.close_for_canary(session, served.holder, served.claim_name),
    )
    await room(session)
    # Memory is read while the unit is started: it takes none before its program has begun.
    was, why = await asyncio.gather(read_memory(session), _up(session, served, start=not running))
    before, now = None if running else was, None
    if why is None:
        why, now = await _seen_through(session, served, alone=quiet or not running)
    taken = beyond_claim(before, now, served.gpus, served.claim_mib) if now else []
    if why is None and not taken:
        return
    if why is None:
        held = await _ended(session, served)
        instance = served.unit.removesuffix(".service")
        raise takes_too_much(instance, served.model, "; ".join(taken), OVER_MIB, held)
    cause = await engine_log.root_cause(session, served.unit, begun)
    held = await _ended(session, served)
    raise load_refused(
        f"{why}: {cause}" if cause else why,
        model=served.model,
        unit=served.unit,
        instance=served.unit.removesuffix(".service"),
        gpus=served.gpus,
        still_held=held,
        said_by=served.engine,
    )


async def _seen_through(
    session: Session, served: Served, *, alone: bool
) -> tuple[str | None, Memory | None]:
    """Why it fails the canary, or what is in use once it has answered: clients wait, so that is
    read meanwhile."""
    answered = asyncio.Event()

    async def in_use() -> Memory | None:
        await answered.wait()
        return await read_memory(session)

    async with (
        _asked(session, served, served.canary_timeout_s) as asked,
        progress(f"{served.unit}: canary"),
    ):
        reading = asyncio.create_task(in_use())
        try:
            why = await canary(asked, served.canary_timeout_s, alone=alone, answered=answered)
            return why, await reading if why is None else None
        finally:
            reading.cancel()


async def _ended(session: Session, served: Served) -> str:
    """Stop it for good; who still holds its memory, if anybody does."""
    try:
        await served_unit.end(
            session, served.unit, served.gpus, served.claim_mib, served.unload_timeout_s
        )
    except Refusal as refusal:
        return refusal.cause
    return ""


async def glance(session: Session, served: Served) -> str | None:
    """`READY` if it answers, `STARTING` if its unit still may come up, None if it is gone.

    One that has not answered in time is taken to be as it was: so many clients may wait before it.
    """
    if not await served_unit.runs(session, served.unit):
        return None
    if not await session.listens(served.port):
        return STARTING
    async with _asked(session, served, GLANCE_S) as asked:
        health = await asked.ready()
    if health.late:
        say(f"{served.unit}: {served.model} is taken to be as it was: {health.reason}")
    elif not health.ok:
        say(f"{served.unit}: {served.model} counts as gone: {health.reason}")
    return READY if health.ok or health.late else None


@asynccontextmanager
async def _asked(session: Session, served: Served, bound_s: float) -> AsyncIterator[Engine]:
    patience = Patience(connect_s=bound_s, first_s=bound_s, between_s=bound_s, whole_s=bound_s)
    async with tunnel(session, served.port, {}) as http:
        yield engine(served.engine, http, Upstream("http://127.0.0.1", served.model), patience)


async def _up(session: Session, served: Served, *, start: bool) -> str | None:
    """Wait until the server listens and calls itself healthy; why it never will, or None."""
    if start:
        await served_unit.start(session, served.unit)
    give_up = time.monotonic() + served.load_timeout_s
    _, restarts = await served_unit.runs_since(session, served.unit)
    async with (
        progress(f"{served.unit}: waiting for {served.model}"),
        _asked(session, served, GLANCE_S) as asked,
    ):
        while time.monotonic() < give_up:
            runs, again = await served_unit.runs_since(session, served.unit)
            if not runs:
                return f"{served.unit} has ended"
            if again > restarts:
                return f"{served.unit} ended as it started"
            # The unit costs the host a process each time, a connection that is refused does not.
            for _ in range(LOOKS):
                if await session.listens(served.port) and (await asked.health()).ok:
                    return None
                await asyncio.sleep(SOON_S)
    return f"it is not up after {served.load_timeout_s:.0f} s"
