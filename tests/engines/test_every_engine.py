"""What holds of every engine alike."""

from __future__ import annotations

import asyncio

import pytest

from engines import KNOWN
from engines.failure import EngineError
from engines.protocol import Delta, Patience, Request, Sampling, Stops
from tests.engines.asking import ALL, NATIVE, OPENAI, adapter, asked, collected, fake
from tests.engines.serving import until


def test_every_known_engine_is_tested_here() -> None:
    assert set(KNOWN) == set(ALL)


@pytest.mark.parametrize("kind", ALL)
def test_a_stream_is_the_whole_answer_in_pieces(kind: str) -> None:
    async def do() -> None:
        async with adapter(fake(kind)) as engine:
            texts, end = await collected(engine, asked(max_tokens=9))
            assert texts == ["Hello", ",", " wörld", "!"]
            assert end.finish_reason == "stop"
            whole = await engine.complete(asked(max_tokens=9))
            assert (whole.text, whole.finish_reason) == ("Hello, wörld!", "stop")
            assert whole.usage == end.usage

    asyncio.run(do())


@pytest.mark.parametrize("kind", sorted(set(ALL) - {"triton-llmapi"}))
def test_tokens_are_counted_the_same_streamed_or_not(kind: str) -> None:
    async def do() -> None:
        async with adapter(fake(kind)) as engine:
            _, end = await collected(engine, asked(max_tokens=9))
            assert (end.usage.prompt_tokens, end.usage.completion_tokens) == (3, 4)

    asyncio.run(do())


@pytest.mark.parametrize("kind", sorted(set(ALL) - {"triton-llmapi"}))
def test_an_answer_that_max_tokens_cut_says_length(kind: str) -> None:
    # The frontend says `stop` of every answer, the inflight batcher nothing at all.
    said = "stop" if kind == "triton-openai" else "length"

    async def do() -> None:
        async with adapter(fake(kind, finish=said)) as engine:
            _, end = await collected(engine, asked(max_tokens=4))
            assert end.finish_reason == "length"
            assert (await engine.complete(asked(max_tokens=4))).finish_reason == "length"

    asyncio.run(do())


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
            await until(lambda: server.running == 0, 1)
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
            await until(lambda: server.running == 0, 1)

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
            await until(lambda: server.running == 0, 1)

    asyncio.run(do())


def test_a_client_knows_which_engine_goes_on_after_a_cancel() -> None:
    stops = {name: kind.stops for name, kind in KNOWN.items()}  # type: ignore[attr-defined]
    assert stops.pop("triton-openai") is Stops.RUNS_ON
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
            await until(lambda: server.running == 0, 1)

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_stream_of_an_engine_that_died_without_a_word_ends_with_its_error(kind: str) -> None:
    server = fake(kind, hang_after=2)

    async def do() -> None:
        async with adapter(server, patience=Patience(doubt_s=0.05)) as engine:
            with pytest.raises(EngineError, match="died in mid-answer: Stub process"):
                await asyncio.wait_for(collected(engine, asked(max_tokens=9)), 5)
            await until(lambda: server.running == 0, 1)

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_whole_answer_of_an_engine_that_died_without_a_word_fails_too(kind: str) -> None:
    server = fake(kind)
    server.stall = True

    async def do() -> None:
        async with adapter(server, patience=Patience(doubt_s=0.05)) as engine:
            asking = asyncio.create_task(engine.complete(asked(max_tokens=9)))
            await until(lambda: server.running == 1, 2)
            server.refuse = (400, {"error": "Stub process 'm_0_0' is not healthy."})
            with pytest.raises(EngineError, match="died in mid-answer: Stub process"):
                await asyncio.wait_for(asking, 5)
            await until(lambda: server.running == 0, 1)

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
        canaries = len(server.seen) - 5
        # Five streams of 1.2 s, a question at most each 0.05 s if they share it.
        assert 1 <= canaries <= 1.2 * 20

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_an_answer_without_end_is_ended(kind: str) -> None:
    server = fake(kind, endless=True)

    async def do() -> None:
        async with adapter(server, patience=Patience(whole_s=0.2)) as engine:
            with pytest.raises(EngineError, match=r"longer than 0\.2 s|in time"):
                await collected(engine, asked(max_tokens=9))
            await until(lambda: server.running == 0, 1)

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_an_engine_that_does_not_listen_is_unavailable_and_its_address_not_told(kind: str) -> None:
    async def do() -> None:
        async with adapter(fake(kind)) as engine:
            engine._link._base = "http://127.0.0.1:1"  # type: ignore[attr-defined]
            with pytest.raises(EngineError) as caught:
                await engine.complete(asked(max_tokens=9))
            assert (caught.value.status, caught.value.retry) == (503, True)
            assert "127.0.0.1" not in caught.value.message
            assert not (await engine.health()).ok
            assert not (await engine.ready()).ok

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_ready_is_a_token(kind: str) -> None:
    server = fake(kind)

    async def do() -> None:
        async with adapter(server) as engine:
            assert (await engine.ready()).ok
            assert server.seen  # It was asked for one.
            server.refuse = (500, {"error": "the engine is dead"})
            assert (await engine.health()).ok  # What the server itself says.
            assert not (await engine.ready()).ok

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_sampling_arrives_under_the_engines_names(kind: str) -> None:
    server = fake(kind)

    async def do() -> None:
        async with adapter(server) as engine:
            sampling = Sampling(max_tokens=7, temperature=0.5, seed=11, stop=("a", "b"))
            await engine.complete(Request(prompt="p", sampling=sampling))
        assert all(str(value) in str(server.seen[0]) for value in (7, 0.5, 11))
        # One of them where the shape differs by version: the adapter finds the others itself.
        said = "_stop': 'a'" if kind == "triton-llmapi" else "['a', 'b']"
        assert said in str(server.seen[0]).replace('"', "'")

    asyncio.run(do())


@pytest.mark.parametrize("kind", ["triton-llmapi", "triton-batcher", "triton-openai"])
def test_what_an_engine_cannot_do_is_refused_and_not_left_out(kind: str) -> None:
    server = fake(kind)

    async def do() -> None:
        async with adapter(server) as engine:
            with pytest.raises(EngineError, match="min_p is not supported") as caught:
                await engine.complete(asked(min_p=0.1))
            assert (caught.value.status, caught.value.param) == (400, "min_p")
        assert not server.seen

    asyncio.run(do())


@pytest.mark.parametrize("kind", OPENAI)
def test_a_key_is_a_bearer_token_and_is_never_printed(kind: str) -> None:
    server = fake(kind)

    async def do() -> None:
        async with adapter(server, key="s3cret") as engine:
            await engine.complete(asked())
            assert "s3cret" not in repr(engine._upstream)  # type: ignore[attr-defined]
        assert server.headers[0]["authorization"] == "Bearer s3cret"  # type: ignore[union-attr]

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_request_is_messages_or_a_prompt(kind: str) -> None:
    with pytest.raises(ValueError, match="either"):
        Request()

    async def do() -> None:
        async with adapter(fake(kind)) as engine:
            chat = Request(messages=({"role": "user", "content": "hi"},))
            if engine.renders_chat:
                assert (await engine.complete(chat)).text == "Hello, wörld!"
            else:
                with pytest.raises(ValueError, match="template"):
                    await engine.complete(chat)

    asyncio.run(do())
