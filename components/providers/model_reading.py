"""What a server holds of a model: for `read`, which must be quick, and for `delete`."""

from __future__ import annotations

from dataclasses import dataclass

from components.providers import ssh_refusals
from components.providers.model_loading import Closing, ModelLoading
from components.providers.model_server import (
    STARTING,
    Wanted,
    canary,
    loaded_digest,
    model_state,
    server,
    unit_state,
    wait_live,
)
from components.providers.progress import progress, say
from components.providers.ssh import Session
from components.providers.triton_client import (
    NoAnswer,
    Rejected,
    ServerDown,
    TritonClient,
)
from models.refusal import Refusal

GLANCE_S = 3.0
"""Bound on each question of a `read`, in seconds: a refresh asks for every model."""
UNKNOWN_DIGEST = "none"
"""Shown as the digest of a model that was loaded by hand with a configuration of its own."""


@dataclass(frozen=True)
class Seen:
    """A model that a server holds; `digest` is None where that was not told in time."""

    state: str
    digest: str | None


async def see(session: Session, wanted: Wanted) -> Seen | None:
    """The model as it is, or None if it is not loaded or no inference can succeed.

    Raises:
        Refusal: the connection broke, or the control key is missing or not accepted.
    """
    if not await session.listens(wanted.http_port):
        return None
    async with server(session, wanted) as triton:
        try:
            return await _see(triton, wanted)
        except ServerDown as error:
            if session.broken:
                raise ssh_refusals.connection_lost(
                    session.target, f"reading {wanted.model}"
                ) from error
            return None
        except Rejected as error:
            if error.status == 403:
                raise
            return None  # unloaded between two questions
        except NoAnswer as error:
            # Busy with loads, as a server with its 8 threads can be: no reason to call it gone.
            say(f"{wanted.instance}: {wanted.model} is taken to be as it was: {error}")
            return Seen("READY", None)


async def _see(triton: TritonClient, wanted: Wanted) -> Seen | None:
    state = await model_state(triton, wanted.model, GLANCE_S)
    if state.state == "LOADING":
        return Seen("LOADING", None)
    if state.state != "READY":
        return None
    digest = await loaded_digest(triton, wanted.model) or UNKNOWN_DIGEST
    failure = await canary(triton, wanted, GLANCE_S)
    if failure is not None:
        say(f"{wanted.instance}: {wanted.model} counts as gone: READY, but fails: {failure}")
        return None
    return Seen("READY", digest)


async def _gone(session: Session, wanted: Wanted) -> bool:
    if await session.listens(wanted.http_port):
        return False
    return await unit_state(session, wanted.unit) not in STARTING


async def remove(session: Session, wanted: Wanted, first: Closing | None = None) -> None:
    """Unload the model if a server holds it; a server that is not there holds nothing.

    A unit that is just starting refuses connections while it loads its models (`--load-model`), so
    only a unit that is not starting either counts as gone.

    Args:
        first: done at the last moment before it, such as closing the routes that lead there.

    Raises:
        Refusal: the server does not come up, or the model or its memory does not go.
    """
    if await _gone(session, wanted):
        return
    async with server(session, wanted) as triton:
        try:
            async with progress(f"{wanted.instance}: waiting for the server"):
                await wait_live(session, triton, wanted, wanted.unload_timeout_s)
        except Refusal:
            if await _gone(session, wanted):
                return
            raise
        loading = ModelLoading(session, triton, wanted)
        state = await loading.at_rest()
        if state.state == "READY":
            await loading.unload(first=first)
        elif state.state:
            await triton.unload(wanted.model)  # a failed one: nothing is held, nothing to wait for
        else:
            # Nothing shows a model that is loading while its entry is removed; Triton answers once
            # the load has ended, and at once where there is none.
            await triton.unload(wanted.model, timeout_s=wanted.load_timeout_s)
