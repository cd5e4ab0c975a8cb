"""Requests that are cancelled at any moment, before a real loopback server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import httpx
import pytest

from gateway import connecting
from gateway.connecting import EngineTransport
from tests.engines.serving import until

STEPS = 60
"""Turns of the event loop after which a request is cancelled; an answer takes fewer."""
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
PART, END = b"5\r\nhello\r\n", b"0\r\n\r\n"


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """One that answers each request with these parts and knows who is connected."""

    def __init__(self, *parts: bytes) -> None:
        self.open = self.seen = self.asked = 0
        self._parts = parts

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open, self.seen = self.open + 1, self.seen + 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                self.asked += 1
                for part in self._parts:
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0)
        self.open -= 1
        writer.close()


def asking(
    server: Handler, work: Callable[[httpx.AsyncClient, str], Awaitable[None]], host: str = ""
) -> None:
    """Do `work` with a client of the server."""

    async def do() -> None:
        listening = await asyncio.start_server(server, "127.0.0.1", 0, backlog=1000)
        port = listening.sockets[0].getsockname()[1]
        url = f"http://{host or '127.0.0.1'}:{port}/"
        async with listening, httpx.AsyncClient(transport=EngineTransport(), timeout=20) as http:
            await work(http, url)

    asyncio.run(do())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is idle goes soon."""
    monkeypatch.setattr(connecting, "KEPT_S", 0.2)


async def cancelled(work: Awaitable[object], *after: int) -> None:
    """Cancel it after so many turns of the loop, and again after so many more."""
    working = asyncio.ensure_future(work)
    for turns in after:
        for _ in range(turns):
            await asyncio.sleep(0)
        working.cancel()
    with suppress(asyncio.CancelledError):
        await working


async def read(http: httpx.AsyncClient, url: str) -> None:
    async with http.stream("POST", url, json={}) as answer:
        async for _ in answer.aiter_bytes():
            pass


def test_a_request_cancelled_at_any_moment_leaves_no_connection() -> None:
    silent = Server()

    async def work(http: httpx.AsyncClient, url: str) -> None:
        for turns in range(STEPS):
            await cancelled(http.post(url, json={}), turns)
        await asyncio.gather(*(cancelled(http.post(url, json={}), turns) for turns in range(STEPS)))
        await until(lambda: silent.open == 0, 5)

    asking(silent, work)
    assert silent.seen > silent.asked > STEPS / 4, "too few were cancelled on either side"


@pytest.mark.parametrize("again", [(), (0,), (1,), (2,), (3,)])
@pytest.mark.parametrize("parts", [(HEAD, PART, PART, END), (HEAD, PART, PART)])
@pytest.mark.usefixtures("quick")
def test_an_answer_cancelled_at_any_moment_once_or_twice_leaves_no_connection(
    parts: tuple[bytes, ...], again: tuple[int, ...]
) -> None:
    server = Server(*parts)

    async def work(http: httpx.AsyncClient, url: str) -> None:
        for turns in range(STEPS):
            await cancelled(read(http, url), turns, *again)
        await asyncio.gather(*(cancelled(read(http, url), turns, *again) for turns in range(STEPS)))
        # Those that were read to their end are kept for a moment.
        await until(lambda: server.open == 0, 5)

    asking(server, work)
    assert server.asked > STEPS


@pytest.mark.parametrize("parts", [(HEAD, PART, END), (HEAD, PART)])
@pytest.mark.usefixtures("quick")
def test_closing_an_answer_cannot_be_cancelled(parts: tuple[bytes, ...]) -> None:
    server = Server(*parts)

    async def work(http: httpx.AsyncClient, url: str) -> None:
        for turns in range(1, 7):
            answer = await http.send(http.build_request("POST", url, json={}), stream=True)
            pieces = answer.stream.__aiter__()  # type: ignore[union-attr]
            assert await anext(pieces) == b"hello"
            if END in parts:
                assert await anext(pieces, None) is None
            await cancelled(answer.aclose(), turns)
        await until(lambda: server.open == 0, 5)

    asking(server, work)


def test_a_connection_is_used_again() -> None:
    server = Server(HEAD, PART, END)

    async def work(http: httpx.AsyncClient, url: str) -> None:
        for _ in range(5):
            await read(http, url)

    asking(server, work)
    assert (server.seen, server.asked) == (1, 5)


@pytest.mark.usefixtures("quick")
def test_an_idle_connection_is_given_up_though_nobody_asks_again() -> None:
    server = Server(HEAD, PART, END)

    async def work(http: httpx.AsyncClient, url: str) -> None:
        await read(http, url)
        assert server.open == 1
        await until(lambda: server.open == 0, 5)

    asking(server, work)


def test_a_connection_that_the_engine_has_closed_is_not_used_again() -> None:
    server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    ended = asyncio.Event()

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answered = asyncio.ensure_future(server(reader, writer))
        await ended.wait()
        ended.clear()
        answered.cancel()
        writer.close()

    async def work(http: httpx.AsyncClient, url: str) -> None:
        for _ in range(3):
            await read(http, url)
            ended.set()
            await until(lambda: not ended.is_set(), 5)

    asking(once, work)
    assert server.seen == 3


def test_no_more_idle_connections_are_kept_than_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connecting, "KEPT", 3)
    server = Server(HEAD, PART, END)

    async def work(http: httpx.AsyncClient, url: str) -> None:
        await asyncio.gather(*(read(http, url) for _ in range(20)))
        assert server.seen > 3
        await until(lambda: server.open == 3, 1)

    asking(server, work)


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ((), httpx.ReadTimeout),
        ((HEAD, PART), httpx.ReadTimeout),
        ((b"nonsense\r\n\r\n",), httpx.RemoteProtocolError),
    ],
)
def test_failures_are_httpxs_own_and_leave_no_connection(
    parts: tuple[bytes, ...], error: type[Exception]
) -> None:
    server = Server(*parts)

    async def work(http: httpx.AsyncClient, url: str) -> None:
        with pytest.raises(error):
            await http.post(url, json={}, timeout=0.1)
        await until(lambda: server.open == 0, 1)

    asking(server, work)


def test_an_engine_that_does_not_listen_is_a_connect_error() -> None:
    async def work(http: httpx.AsyncClient, url: str) -> None:
        port = int(url.strip("/").rpartition(":")[2])
        with pytest.raises(httpx.ConnectError):
            await http.post(f"http://127.0.0.2:{port}/")

    asking(Server(), work)


def test_an_engine_may_be_called_by_a_name_with_several_addresses() -> None:
    async def work(http: httpx.AsyncClient, url: str) -> None:
        await read(http, url)

    asking(Server(HEAD, PART, END), work, host="localhost")
