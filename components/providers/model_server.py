"""A running Triton server as one model's resource sees it: over SSH, with the control key."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from components.providers import ssh_refusals, triton_refusals
from components.providers.ssh import Session
from components.providers.ssh_tunnel import tunnel
from components.providers.triton_client import (
    ANSWER_S,
    ModelState,
    NoAnswer,
    Rejected,
    ServerDown,
    TritonClient,
)
from models.engine import BATCHER_PARTS, part_name
from models.instance import CONTROL_HEADER

POLL_S = 0.25
"""Pause between two questions while waiting, in seconds."""
SOON_S = 0.1
"""The same where a role's clients wait too, and the question costs the host nothing."""
BUSY = LOADING, UNLOADING = ("LOADING", "UNLOADING")
"""Triton's states of a model that is about to be another's."""
COMING = ("activating", "reloading")
"""systemd's states of a unit that is about to run."""
STARTING = ("active", *COMING)
"""systemd's states of a unit that it keeps running, so that its server may still come up; one that
restarts just now is `activating` (systemctl(1), is-active)."""


@dataclass(frozen=True)
class Wanted:
    """A TritonModel's properties, with the numbers as what they are."""

    model: str
    instance: str
    unit: str
    http_port: int
    control_key_file: str
    digest: str
    gpus: list[str]
    claim_mib: int
    load_timeout_s: float
    unload_timeout_s: float
    canary_timeout_s: float
    engine: str = "triton-vllm"
    """What computes in the server: a name of `engines.KNOWN`."""
    metrics_port: int = 0
    """Of the server's metrics on the host's loopback; 0: not known."""
    has_fallback: bool = False
    """Whether another model is to serve where this one does not."""

    @classmethod
    def of(cls, props: Mapping[str, Any]) -> Wanted:
        """From a resource's properties."""
        return cls(
            model=props["model"],
            instance=props["instance"],
            unit=props["unit"],
            http_port=int(props["http_port"]),
            control_key_file=props["control_key_file"],
            digest=props["config_digest"],
            gpus=list(props["gpus"]),
            claim_mib=int(props["claim_mib"]),
            load_timeout_s=float(props["load_timeout_s"]),
            unload_timeout_s=float(props["unload_timeout_s"]),
            canary_timeout_s=float(props["canary_timeout_s"]),
            engine=props.get("engine") or cls.engine,
            metrics_port=int(props.get("metrics_port") or 0),
            has_fallback=bool(props.get("fallback")),
        )


async def unit_state(session: Session, unit: str) -> str:
    """`systemctl is-active`: "active", "failed", …; empty where systemd says nothing."""
    done = await session.run("systemctl", "is-active", unit, doing=f"asking for {unit}'s state")
    return done.stdout.strip()


@asynccontextmanager
async def server(session: Session, wanted: Wanted) -> AsyncIterator[TritonClient]:
    """A client for the instance's server; what breaks inside the block becomes a refusal.

    Raises:
        Refusal: control key missing or not accepted, the connection or the server broke off, or
            Triton answered with an error that the caller did not handle.
    """
    key = await _control_key(session, wanted)
    async with tunnel(session, wanted.http_port, {CONTROL_HEADER: key}) as http:
        try:
            yield TritonClient(http)
        except ServerDown as error:
            if session.broken:
                raise ssh_refusals.connection_lost(
                    session.target, f"talking to {wanted.instance} about {wanted.model}"
                ) from error
            raise triton_refusals.not_live(
                wanted.instance, wanted.unit, 0, f"the connection broke off ({error})"
            ) from error
        except NoAnswer as error:
            raise triton_refusals.wedged(wanted.instance, wanted.unit, str(error)) from error
        except Rejected as error:
            if error.status != 403:
                raise triton_refusals.unexpected(
                    wanted.instance, wanted.unit, str(error)
                ) from error
            raise triton_refusals.control_key_wrong(
                wanted.instance, wanted.unit, wanted.control_key_file
            ) from error


async def _control_key(session: Session, wanted: Wanted) -> str:
    path = wanted.control_key_file
    done = await session.run("cat", "--", path, doing=f"reading {path}", as_root=True)
    if done.status != 0:
        why = done.stderr.strip().rpartition(": ")[2]
        raise triton_refusals.control_key_unreadable(wanted.instance, path, why)
    return done.stdout.strip()


async def wait_live(session: Session, triton: TritonClient, wanted: Wanted, bound_s: float) -> None:
    """Wait for the server, which refuses connections until its start-up loads end.

    Raises:
        Refusal: its unit has stopped or failed, or the bound (seconds) ran out.
    """
    give_up = time.monotonic() + bound_s
    while not await triton.live():
        state = ""
        if not await session.listens(wanted.http_port):
            state = await unit_state(session, wanted.unit)
            if state in ("inactive", "failed", "deactivating"):
                raise triton_refusals.not_live(
                    wanted.instance, wanted.unit, 0, f"its unit is {state}"
                )
        if time.monotonic() > give_up:
            why = f"its unit is {state}" if state else "no healthy answer on its port"
            raise triton_refusals.not_live(wanted.instance, wanted.unit, bound_s, why)
        await asyncio.sleep(2 * POLL_S)


async def model_state(triton: TritonClient, model: str, timeout_s: float = ANSWER_S) -> ModelState:
    """A model's row of the index; READY for one that the index does not show but that is.

    The index lists what is in the repository: a model whose entry was removed is in none, although
    it is held as before (Triton 2.51).
    """
    index = await triton.index(timeout_s)
    # While an ensemble's parts load, it has no state itself; while they unload, it has gone before.
    for part in BATCHER_PARTS:
        of_part = index.get(part_name(model, part))
        if of_part and of_part.state in BUSY:
            return of_part
    state = index.get(model, ModelState(""))
    if not state.state and await triton.model_ready(model):
        return ModelState("READY")
    return state


async def wait_settled(
    triton: TritonClient, wanted: Wanted, at_most_s: float = math.inf
) -> ModelState:
    """Wait until the model is neither loading nor unloading.

    Bounded by the model's own timeout for what it is doing, and by `at_most_s` (seconds).

    Raises:
        Refusal: it still is.
    """
    began = time.monotonic()
    bounds = {LOADING: wanted.load_timeout_s, UNLOADING: wanted.unload_timeout_s}
    while True:
        state = await model_state(triton, wanted.model)
        if state.state not in bounds:
            return state
        bound_s = min(bounds[state.state], at_most_s)
        if time.monotonic() > began + bound_s:
            raise triton_refusals.still_busy(
                wanted.instance, wanted.unit, wanted.model, state.state, bound_s
            )
        await asyncio.sleep(SOON_S)


async def loaded_digest(triton: TritonClient, model: str) -> str | None:
    """`berth_digest` in the configuration that the server holds, which is what serves.

    The renderer writes it; a reload that failed leaves the old one serving under an index that
    says READY, so neither the repository's files nor the index tell.
    """
    parameters = (await triton.config(model)).get("parameters", {})
    value = parameters.get("berth_digest", {}).get("string_value")
    return str(value) if value else None


async def canary(triton: TritonClient, wanted: Wanted, timeout_s: float) -> str | None:
    """One short inference; None if it succeeded, else why not.

    Raises:
        NoAnswer: nothing within the bound (seconds): broken or busy, which cannot be told apart.
    """
    try:
        await triton.token(wanted.model, wanted.engine, timeout_s=timeout_s)
    except Rejected as error:
        # 503 is a full queue: the model works, and has more work than it takes.
        return None if error.status == 503 else str(error)
    return None
