"""Any ASGI app behind a real loopback socket, in the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn


@asynccontextmanager
async def serving(app: Any, *, uds: Path | None = None) -> AsyncIterator[str]:
    """The app's base URL while it is served."""
    listener = socket.socket(socket.AF_UNIX if uds else socket.AF_INET)
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
        await server.shutdown(sockets=[listener])


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
