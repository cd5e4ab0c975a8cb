"""What a server holds of a model: for `read`, which must be quick, and for `delete`."""

from __future__ import annotations

from dataclasses import dataclass

from components.providers import ssh_refusals
from components.providers.model_loading import ModelLoading
from components.providers.model_server import (
    STARTING,
    Wanted,
    canary,
    loaded_digest,
    server,
    unit_state,
    wait_live,
    wait_settled,
)
from components.providers.progress import progress, say
from components.providers.ssh import Session
from components.providers.triton_client import ModelState, NoAnswer, ServerDown, TritonClient

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
        except NoAnswer as error:
            # Busy with loads, as a server with its 8 threads can be: no reason to call it gone.
            say(f"{wanted.instance}: {wanted.model} is taken to be as it was: {error}")
            return Seen("READY", None)


async def _see(triton: TritonClient, wanted: Wanted) -> Seen | None:
    state = (await triton.index(GLANCE_S)).get(wanted.model, ModelState(""))
    if state.state == "LOADING":
        return Seen("LOADING", None)
    if state.state != "READY":
        return None
    digest = await loaded_digest(triton, wanted.model) or UNKNOWN_DIGEST
    failure = await canary(triton, wanted.model, GLANCE_S)
    if failure is not None:
        say(
            f"{wanted.instance}: {wanted.model} is READY but fails, so it counts as gone: {failure}"
        )
        return None
    return Seen("READY", digest)


async def remove(session: Session, wanted: Wanted) -> None:
    """Unload the model if a server holds it; a server that is not there holds nothing.

    A unit that is just starting refuses connections while it loads its models (`--load-model`), so
    only a unit that is not starting either counts as gone.

    Raises:
        Refusal: the server does not come up, or the model or its memory does not go.
    """
    if not await session.listens(wanted.http_port):
        if await unit_state(session, wanted.unit) not in STARTING:
            return
    async with server(session, wanted) as triton:
        async with progress(f"{wanted.instance}: waiting for the server"):
            await wait_live(session, triton, wanted, wanted.unload_timeout_s)
        state = await wait_settled(triton, wanted, wanted.load_timeout_s)
        if state.state == "READY":
            await ModelLoading(session, triton, wanted).unload()
        elif state.state:
            await triton.unload(wanted.model)  # a failed one: nothing is held, nothing to wait for
