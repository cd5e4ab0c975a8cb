"""Listening as the real servers do: the port is bound first, and heard only once all is loaded."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that refuses connections until somebody listens on it.

    Raises:
        OSError: the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, or asyncio leaves Nagle's algorithm on: tokens would wait 40 ms for an acknowledgement.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    return sock


class _Server(uvicorn.Server):
    """uvicorn dies of the signal that ended it; the real servers end with status 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._leave)
        yield

    def _leave(self) -> None:
        self.should_exit = True


def serve(
    app: ASGIApp,
    sock: socket.socket,
    beside: Callable[[uvicorn.Server], Awaitable[None]],
    before: Callable[[], Awaitable[None]] | None = None,
    after: Callable[[], Awaitable[None]] | None = None,
    **options: Any,
) -> None:
    """Serve until a signal, or until somebody sets the server's `should_exit`; `beside` runs too.

    `before` is waited for before anybody is heard, `after` once nobody is any more.

    Streams that are open then have a second.
    """
    server = _Server(uvicorn.Config(app, timeout_graceful_shutdown=1, **options))

    async def work() -> None:
        if before is not None:
            await before()
        companion = asyncio.ensure_future(beside(server))
        try:
            await server.serve(sockets=[sock])
        finally:
            companion.cancel()
            if after is not None:
                await after()

    asyncio.run(work())


def end_on_signal() -> None:
    """Before serving: the first process of a container ignores signals that it does not handle."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
