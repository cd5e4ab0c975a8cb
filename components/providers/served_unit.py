"""The unit of a server with one model for life: how it is looked at, and how it is ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from components.providers import berth_host
from components.providers.gpu_memory import Memory, not_freed, read_memory
from components.providers.model_server import POLL_S, STARTING, unit_state
from components.providers.progress import progress
from components.providers.ssh import Session
from models.refusal import Refusal

LONGEST_STOP_S = 330.0
"""Bound on `systemctl stop`: the unit's own `TimeoutStopSec`, and a little, in seconds."""


async def runs(session: Session, unit: str) -> bool:
    """Whether systemd keeps it running; one that restarts just now counts."""
    return await unit_state(session, unit) in STARTING


async def prepare(session: Session, unit: str, script: str) -> None:
    """Run what has to be done before the unit is started.

    Raises:
        Refusal: it fails.
    """
    done = await session.run(
        "/bin/sh", "-eu", stdin=script, doing=f"preparing {unit}", as_root=True, timeout_s=90.0
    )
    if done.status != 0:
        raise Refusal(
            f"{unit} cannot be prepared: {' '.join(done.stderr.split()) or done.status}",
            consequence="It is not started.",
            fix="mend what it says and run this again.",
        )


async def start(session: Session, unit: str) -> None:
    """Have it running, once it is prepared; if it does not start, its gate is asked for its words.

    Whether it stays up is for whoever waits for it to see.

    Raises:
        Refusal: the gate does not let it start; it is disabled then, so that it does not try on.
    """
    done = await session.run(
        "systemctl", "start", "--quiet", unit,
        doing=f"starting {unit}", as_root=True, timeout_s=90.0,
    )  # fmt: skip
    if done.status == 0:
        return
    gate = await session.run(
        berth_host.PROGRAM,
        "gate",
        unit.removesuffix(".service"),
        doing=f"asking the gate of {unit}",
        as_root=True,
    )
    if gate.status != 0:
        await session.run(
            "systemctl", "disable", "--now", "--quiet", unit,
            doing=f"stopping {unit}", as_root=True, timeout_s=LONGEST_STOP_S,
        )  # fmt: skip
        raise Refusal(
            f"{unit} may not start: {' '.join(gate.stderr.split())}",
            consequence="It is not started.",
            fix="`berth claims` shows who holds what there.",
        )


async def runs_since(session: Session, unit: str) -> tuple[bool, int]:
    """Whether systemd keeps it running, and how often it has started it again since a person or
    Berth did."""
    done = await session.run(
        "systemctl", "show", "--property", "ActiveState,NRestarts", unit,
        doing=f"asking for {unit}'s state",
    )  # fmt: skip
    said = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    again = said.get("NRestarts", "")
    return said.get("ActiveState") in STARTING, int(again) if again.isdigit() else 0


async def end(
    session: Session, unit: str, gpus: Sequence[str], claim_mib: int, timeout_s: float
) -> None:
    """Stop the unit, for good, and wait until the memory of its GPUs is back.

    A unit that is not there needs nothing, nor does one that has ended and would not come back: one
    that is just ending or has failed may, by `Restart` or at the next boot.

    Args:
        gpus: UUIDs.
        claim_mib: what it took of each, in MiB.
        timeout_s: bound on waiting for the memory once it has stopped, in seconds.

    Raises:
        Refusal: it does not stop, or memory is still held when the time is over.
    """
    state = await _state(session, unit)
    ended = state.get("ActiveState") in ("inactive", "failed")
    if state.get("LoadState") == "not-found" or (ended and not _comes_back(state)):
        return
    before = None if ended else await read_memory(session)
    async with progress(f"stopping {unit}"):
        done = await session.run(
            "systemctl", "disable", "--now", "--quiet", unit,
            doing=f"stopping {unit}", as_root=True, timeout_s=LONGEST_STOP_S,
        )  # fmt: skip
    if await runs(session, unit):
        raise Refusal(
            f"{unit} does not stop: {done.stderr.strip() or 'systemd does not say why'}",
            consequence="Its model keeps its GPUs, so nothing else is started on them.",
            fix=f"`systemctl status {unit}` and `docker ps` on the host show what hangs.",
        )
    if before is not None:
        async with progress(f"waiting for the memory of {unit}"):
            await _wait_freed(session, unit, before, gpus, claim_mib, timeout_s)


async def _state(session: Session, unit: str) -> dict[str, str]:
    """What systemd says of it, by systemd's names."""
    done = await session.run(
        "systemctl", "show", "--property", "LoadState,ActiveState,UnitFileState", unit,
        doing=f"asking for {unit}'s state",
    )  # fmt: skip
    return dict(line.partition("=")[::2] for line in done.stdout.splitlines())


def _comes_back(state: Mapping[str, str]) -> bool:
    return state.get("UnitFileState") == "enabled"


async def _wait_freed(
    session: Session,
    unit: str,
    before: Memory,
    gpus: Sequence[str],
    claim_mib: int,
    timeout_s: float,
) -> None:
    give_up = time.monotonic() + timeout_s
    while True:
        now = await read_memory(session)
        held = [] if now is None else not_freed(before, now, gpus, claim_mib)
        if now is None or not held:
            return
        if time.monotonic() > give_up:
            raise Refusal(
                f"{unit} has stopped, but {timeout_s:.0f} s later its memory is not back: "
                f"{now.held_by(held)}",
                consequence="Another model on these GPUs would end in CUDA out of memory.",
                fix="end the processes that hold it, then run this again.",
            )
        await asyncio.sleep(POLL_S)
