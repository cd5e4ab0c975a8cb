"""Any ASGI app behind a real loopback socket, in the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn

TCP = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
"""Whole, or asyncio leaves Nagle's algorithm on, and each first token waits 40 ms."""


@asynccontextmanager
async def serving(app: Any, *, uds: Path | None = None) -> AsyncIterator[str]:
    """The app's base URL while it is served."""
    listener = socket.socket(*((socket.AF_UNIX,) if uds else TCP))
    listener.bind(str(uds) if uds else ("127.0.0.1", 0))
    listener.listen(512)
    config = uvicorn.Config(app, log_level="critical", lifespan="on", timeout_graceful_shutdown=1)
    config.load()
    server = uvicorn.Server(config)
    # Its `serve` would take the process's signals and look ten times a second whether to end.
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield "http://unix" if uds else f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await _ended(server)


async def _ended(server: uvicorn.Server) -> None:
    """As its own `shutdown`, which sleeps a tenth of a second however little there is to wait for.

    An answer that has not ended within a second is cancelled.
    """
    for listening in server.servers:
        listening.close()
    for connection in list(server.server_state.connections):
        connection.shutdown()
    running = set(server.server_state.tasks)
    if running:
        _, late = await asyncio.wait(running, timeout=1)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    await server.lifespan.shutdown()


async def until(true: Callable[[], bool] | Callable[[], Awaitable[bool]], within_s: float) -> float:
    """Wait for something that must come true; the seconds it took."""
    clock = asyncio.get_running_loop().time
    began = clock()
    while True:
        now = true()
        if now if isinstance(now, bool) else await now:
            return clock() - began
        assert clock() - began < within_s, f"not within {within_s} s"
        await asyncio.sleep(0.005)
