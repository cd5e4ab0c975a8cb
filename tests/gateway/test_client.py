"""A source of events is closed however its answer ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from gateway.client import EventStream
from tests.engines.serving import until


class Sending:
    """A server that takes the first events and then no more, and a client that may have gone."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.gone = asyncio.Event()
        self.closed = False

    async def events(self) -> AsyncGenerator[str, None]:
        try:
            while True:
                yield "data: x\n\n"
        finally:
            self.closed = True

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            self.takes -= 1
            if self.takes < 0:
                await asyncio.Event().wait()


def test_a_client_that_goes_while_something_is_sent_to_it() -> None:
    async def do() -> None:
        client = Sending(takes=3)
        events = client.events()  # Kept, so that it is not closed by being collected.
        answering = asyncio.create_task(
            EventStream(events)({"type": "http"}, client.receive, client.send)
        )
        await until(lambda: client.takes < 0, 1)
        client.gone.set()
        await asyncio.wait_for(answering, 1)
        assert client.closed

    asyncio.run(do())


def test_a_client_that_takes_nothing_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.client.TAKES_S", 0.05)

    async def do() -> None:
        client = Sending(takes=3)
        events = client.events()
        answer = EventStream(events)
        await asyncio.wait_for(answer({"type": "http"}, client.receive, client.send), 1)
        assert client.closed

    asyncio.run(do())


def test_a_client_that_goes_before_the_first_byte() -> None:
    async def do() -> None:
        client = Sending(takes=0)
        events = client.events()
        first = await anext(events)
        client.gone.set()

        async def never(_: Any) -> None:
            await asyncio.Event().wait()

        answer = EventStream(events, first)
        await asyncio.wait_for(answer({"type": "http"}, client.receive, never), 1)
        assert client.closed

    asyncio.run(do())
