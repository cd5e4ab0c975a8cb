"""How answers end at every engine: cut, cancelled, broken, silent or dead."""

from __future__ import annotations

import asyncio

import pytest

from engines import KNOWN
from engines.failure import EngineError
from engines.protocol import Delta, Patience, Stops
from tests.engines.asking import ALL, FRONTENDS, NATIVE, adapter, asked, collected, fake
from tests.engines.serving import until


@pytest.mark.parametrize("kind", ALL)
def test_a_connection_that_breaks_in_mid_answer_is_an_error_and_no_end(kind: str) -> None:
    async def do() -> None:
        async with adapter(fake(kind, break_after=2)) as engine:
            stream = engine.stream(asked(max_tokens=9))
            assert [await anext(stream), await anext(stream)] == [Delta("Hello"), Delta(",")]
            with pytest.raises(EngineError, match=r"broke|before its end") as caught:
                await anext(stream)
            assert (caught.value.status, caught.value.retry) == (502, True)

    asyncio.run(do())


@pytest.mark.parametrize("kind", [*NATIVE, "vllm"])
def test_an_error_event_after_a_200_is_an_error(kind: str) -> None:
    async def do() -> None:
        async with adapter(fake(kind, fail_after=2)) as engine:
            with pytest.raises(EngineError, match=r"boom|EngineCore died") as caught:
                await collected(engine, asked(max_tokens=9))
            assert caught.value.status == 500

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_closing_a_stream_ends_the_engines_request(kind: str) -> None:
    server = fake(kind, endless=True)

    async def do() -> None:
        async with adapter(server) as engine:
            stream = engine.stream(asked(max_tokens=9))
            await anext(stream)
            assert server.running == 1
            assert await engine.cancel(stream) is engine.stops
            await until(lambda: server.running == 0, 5)
            assert [event async for event in stream] == []

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_stream_is_cancelled_while_another_task_waits_for_its_next_event(kind: str) -> None:
    server = fake(kind, endless=True)

    async def do() -> None:
        async with adapter(server) as engine:
            stream = engine.stream(asked(max_tokens=9))
            await anext(stream)

            async def read() -> int:
                return len([event async for event in stream])

            reading = asyncio.create_task(read())
            await asyncio.sleep(0)
            await engine.cancel(stream)
            assert await asyncio.wait_for(reading, 1) >= 0
            await until(lambda: server.running == 0, 5)

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_reader_that_is_cancelled_closes_its_connection(kind: str) -> None:
    server = fake(kind, endless=True)

    async def do() -> None:
        async with adapter(server) as engine:
            reading = asyncio.create_task(collected(engine, asked(max_tokens=9)))
            await until(lambda: server.running == 1, 2)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await until(lambda: server.running == 0, 5)

    asyncio.run(do())


def test_a_client_knows_which_engine_goes_on_after_a_cancel() -> None:
    stops = {name: kind.stops for name, kind in KNOWN.items()}  # type: ignore[attr-defined]
    assert {stops.pop(kind) for kind in FRONTENDS} == {Stops.RUNS_ON}
    assert stops.pop("trtllm-serve") is Stops.WITHIN_A_SECOND
    assert set(stops.values()) == {Stops.AT_ONCE}


@pytest.mark.parametrize("kind", ALL)
def test_silence_is_bounded_and_said(kind: str) -> None:
    server = fake(kind, endless=True, tokens=["a"])

    async def do() -> None:
        async with adapter(server, patience=Patience(between_s=0.0)) as engine:
            with pytest.raises(EngineError, match="said nothing for 0 s") as caught:
                await collected(engine, asked(max_tokens=9))
            assert caught.value.status == 504
            await until(lambda: server.running == 0, 5)

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_stream_of_an_engine_that_died_without_a_word_ends_with_its_error(kind: str) -> None:
    server = fake(kind, hang_after=2)

    async def do() -> None:
        async with adapter(server, patience=Patience(doubt_s=0.05)) as engine:
            with pytest.raises(EngineError, match="died in mid-answer: Stub process"):
                await asyncio.wait_for(collected(engine, asked(max_tokens=9)), 5)
            await until(lambda: server.running == 0, 5)

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_whole_answer_of_an_engine_that_died_without_a_word_fails_too(kind: str) -> None:
    server = fake(kind, dies=True)

    async def do() -> None:
        async with adapter(server, patience=Patience(doubt_s=0.05)) as engine:
            with pytest.raises(EngineError, match="died in mid-answer: Stub process"):
                await asyncio.wait_for(engine.complete(asked(max_tokens=9)), 5)
            assert len(server.seen) > 1
            await until(lambda: server.running == 0, 5)

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_slow_engine_that_answers_others_is_waited_for_and_asked_once_at_a_time(
    kind: str,
) -> None:
    server = fake(kind, slow_s=0.3)

    async def do() -> None:
        async with adapter(server, patience=Patience(doubt_s=0.05)) as engine:
            several = [collected(engine, asked(max_tokens=9)) for _ in range(5)]
            for texts, _ in await asyncio.gather(*several):
                assert "".join(texts) == "Hello, wörld!"
        assert len(server.seen) > 5, "nobody doubted"
        # Each of the five doubts while the question of the first is still being answered.
        assert server.most_answering == 1

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_an_answer_without_end_is_ended(kind: str) -> None:
    server = fake(kind, endless=True)

    async def do() -> None:
        async with adapter(server, patience=Patience(whole_s=0.2)) as engine:
            with pytest.raises(EngineError, match=r"longer than 0\.2 s|in time"):
                await collected(engine, asked(max_tokens=9))
            await until(lambda: server.running == 0, 5)

    asyncio.run(do())
