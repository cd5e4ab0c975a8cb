"""Requests that are cancelled at any moment, before a real loopback server."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx

from gateway.connecting import EngineTransport
from tests.engines.serving import until

STEPS = 60
"""Turns of the event loop after which a request is cancelled; its headers are sent in about 20."""


class Silent:
    """A server that answers nothing and knows who is connected."""

    def __init__(self) -> None:
        self.open = self.seen = self.asked = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open, self.seen = self.open + 1, self.seen + 1
        with suppress(ConnectionError):
            self.asked += bool(await reader.read(1))
            while await reader.read(65536):
                pass
        self.open -= 1
        writer.close()


async def cancelled_after(turns: int, http: httpx.AsyncClient, url: str) -> None:
    asking = asyncio.ensure_future(http.post(url, json={}))
    for _ in range(turns):
        await asyncio.sleep(0)
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking


def test_a_request_cancelled_at_any_moment_leaves_no_connection() -> None:
    async def do() -> None:
        silent = Silent()
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with server, httpx.AsyncClient(transport=EngineTransport(), timeout=20) as http:
            for turns in range(STEPS):
                await cancelled_after(turns, http, url)
            await asyncio.gather(*(cancelled_after(turns, http, url) for turns in range(STEPS)))
            await until(lambda: silent.open == 0, 5)
        assert silent.seen > silent.asked > STEPS / 4, "too few were cancelled on either side"

    asyncio.run(do())
