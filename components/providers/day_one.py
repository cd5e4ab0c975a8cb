"""The day-one gate of a model in Triton: the canary, asked through the server's two ports."""

from __future__ import annotations

from contextlib import AsyncExitStack

from components.providers.engine_canary import canary
from components.providers.model_server import Wanted
from components.providers.ssh import Session
from components.providers.ssh_tunnel import tunnel
from components.providers.triton_client import TritonClient
from engines import engine
from engines.protocol import Patience, Upstream

AT = "http://127.0.0.1"
"""Whatever the tunnel leads to."""


async def canary_of(
    session: Session, triton: TritonClient, wanted: Wanted, *, alone: bool = True
) -> str | None:
    """See a model through the canary; why it fails, or None.

    Args:
        alone: whether nobody else can be using it, so that its metrics tell of the canary alone.
    """
    bound_s = wanted.canary_timeout_s
    patience = Patience(connect_s=bound_s, first_s=bound_s, between_s=bound_s, whole_s=bound_s)
    asked = engine(wanted.engine, triton.http, Upstream(AT, wanted.model), patience)
    async with AsyncExitStack() as stack:
        meter = None
        if alone and wanted.metrics_port and await session.listens(wanted.metrics_port):
            http = await stack.enter_async_context(tunnel(session, wanted.metrics_port, {}))
            upstream = Upstream(AT, wanted.model, f"{AT}/metrics")
            meter = engine(wanted.engine, http, upstream, patience).metrics
        return await canary(asked, bound_s, meter, alone=alone)
