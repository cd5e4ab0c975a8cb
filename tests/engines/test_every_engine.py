"""What holds of every engine alike."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest

from engines import KNOWN
from engines.failure import EngineError
from engines.protocol import Request, Sampling
from models.engine import TRAITS, Engine
from tests.engines.asking import ALL, FRONTENDS, OPENAI, adapter, asked, collected, fake


def test_every_known_engine_is_tested_here() -> None:
    assert set(KNOWN) == set(ALL)


def test_every_engine_has_traits_and_an_adapter() -> None:
    assert set(get_args(Engine)) == set(TRAITS) == set(KNOWN)


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
    said = "stop" if kind in FRONTENDS else "length"

    async def do() -> None:
        async with adapter(fake(kind, finish=said)) as engine:
            _, end = await collected(engine, asked(max_tokens=4))
            assert end.finish_reason == "length"
            assert (await engine.complete(asked(max_tokens=4))).finish_reason == "length"

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


@pytest.mark.parametrize("kind", ["triton-llmapi", "triton-batcher", *FRONTENDS])
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
        assert server.headers[0]["authorization"] == "Bearer s3cret"

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
