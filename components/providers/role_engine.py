"""The engine behind a load, asked through its host's SSH: one protocol whatever serves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from components.providers.ssh import Session
from components.providers.ssh_tunnel import tunnel
from components.renderers import server_container
from engines import engine
from engines.failure import unavailable
from engines.protocol import Engine, Patience, Upstream
from models.instance import CONTROL_HEADER
from models.plan import Placement

AT = "http://127.0.0.1"
"""Whatever the tunnel leads to."""


@asynccontextmanager
async def engine_of(
    session: Session, placement: Placement, bound_s: float
) -> AsyncIterator[Engine]:
    """The engine of a load.

    Args:
        session: to its host.
        placement: the load.
        bound_s: how long any one answer may take, in seconds.

    Raises:
        EngineError: nothing listens where it should.
    """
    port, model, headers = await _where(session, placement)
    if not await session.listens(port):
        raise unavailable(f"{placement.served_by} does not run")
    patience = Patience(connect_s=bound_s, first_s=bound_s, between_s=bound_s, whole_s=bound_s)
    async with tunnel(session, port, headers) as http:
        yield engine(placement.engine, http, Upstream(AT, model), patience)


async def _where(session: Session, placement: Placement) -> tuple[int, str, dict[str, str]]:
    """Port, the engine's own name of the model, and headers."""
    if placement.server:
        name = server_container.renderer(placement).served_name(placement)
        return placement.server.port, name, {}
    instance = placement.instance
    path = instance.control_key_file
    # Where a key guards all of Triton's APIs, inference asks for it too.
    done = await session.run("cat", "--", path, doing=f"reading {path}", as_root=True)
    return instance.declared.http_port, placement.entry, {CONTROL_HEADER: done.stdout.strip()}
