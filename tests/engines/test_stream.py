"""Ending a stream at the awkward moments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from engines.doubt import Doubt
from engines.failure import EngineError, failed
from engines.protocol import Completion, Delta, Event, Patience
from engines.stream import Stream


class Source:
    """Gives an event each time that it is told to, and notes that it was closed."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.closed = False

    async def events(self) -> AsyncGenerator[Event, None]:
        try:
            while True:
                await self.arrived.wait()
                self.arrived.clear()
                yield Delta("a")
        finally:
            self.closed = True


async def well() -> Completion:
    return Completion("1", "stop")


def stream_of(source: Source) -> Stream:
    return Stream(source.events(), Patience(), Doubt(well, 60))


def test_an_event_that_comes_at_the_moment_of_the_cancel_does_not_hold_it_up() -> None:
    async def do() -> None:
        source = Source()
        stream = stream_of(source)

        async def read() -> list[Event]:
            return [event async for event in stream]

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        source.arrived.set()
        async with asyncio.timeout(1):
            await stream.aclose()  # In this very step of the loop: the reader has yet to wake.
            assert await reading == []
        assert source.closed

    asyncio.run(do())


def test_several_may_close_it_and_it_may_be_closed_unread() -> None:
    async def do() -> None:
        source = Source()
        stream = stream_of(source)
        await asyncio.gather(stream.aclose(), stream.aclose())
        assert [event async for event in stream] == []
        source = Source()
        stream = stream_of(source)
        reading = asyncio.create_task(anext(stream, None))
        await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.gather(stream.aclose(), stream.aclose()), 1)
        assert await reading is None
        assert source.closed

    asyncio.run(do())


def test_a_question_that_fails_only_for_its_own_sake_says_nothing_of_the_engine() -> None:
    async def refuses() -> Completion:
        raise EngineError("max_tokens must be 2 at least", status=400, retry=False)

    async def dead() -> Completion:
        raise failed("no")

    async def do() -> None:
        assert await Doubt(refuses, 1).verdict() is None
        assert await Doubt(well, 1).verdict() is None
        verdict = await Doubt(dead, 1).verdict()
        assert verdict
        assert verdict.message == "the engine died in mid-answer: no"

    asyncio.run(do())


def test_work_that_is_watched_ends_with_the_one_who_waits_for_it() -> None:
    ended = False

    async def work() -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended = True

    async def do() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Doubt(well, 0.01).watched(work()), 0.05)
        assert ended

    asyncio.run(do())
