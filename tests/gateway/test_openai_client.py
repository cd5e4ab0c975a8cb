"""The official client, unchanged, in front of every engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.engines.asking import ALL, NATIVE, fake
from tests.engines.serving import until
from tests.gateway.running import running

HI: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]


@pytest.mark.parametrize("kind", ALL)
def test_a_chat_is_answered_whole_and_streamed_alike(kind: str, tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake(kind)}) as service:
            chat = service.openai.chat.completions
            whole = await chat.create(model="shop/architect", messages=HI)
            assert whole.choices[0].message.content == "Hello, wörld!"
            assert (whole.model, whole.choices[0].finish_reason) == ("shop/architect", "stop")
            stream = await chat.create(model="shop/architect", messages=HI, stream=True)
            chunks = [chunk async for chunk in stream]
            assert chunks[0].choices[0].delta.role == "assistant"
            said = [chunk.choices[0].delta.content or "" for chunk in chunks]
            assert "".join(said) == "Hello, wörld!"
            assert chunks[-1].choices[0].finish_reason == "stop"
            assert {chunk.model for chunk in chunks} == {"shop/architect"}
            assert len({chunk.id for chunk in chunks}) == 1

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_completion_is_answered_whole_and_streamed_alike(kind: str, tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake(kind)}) as service:
            completions = service.openai.completions
            whole = await completions.create(model="shop/architect", prompt="Say")
            assert (whole.choices[0].text, whole.model) == ("Hello, wörld!", "shop/architect")
            stream = await completions.create(model="shop/architect", prompt="Say", stream=True)
            assert "".join([c.choices[0].text async for c in stream]) == "Hello, wörld!"

    asyncio.run(do())


@pytest.mark.parametrize("kind", sorted(set(ALL) - {"triton-llmapi"}))
def test_usage_is_counted_and_streamed_only_where_it_was_asked_for(
    kind: str, tmp_path: Path
) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake(kind)}) as service:
            chat = service.openai.chat.completions
            whole = await chat.create(model="shop/architect", messages=HI)
            assert whole.usage
            assert (whole.usage.prompt_tokens, whole.usage.total_tokens) == (3, 7)
            with_it: Any = {"stream_options": {"include_usage": True}}
            stream = await chat.create(model="shop/architect", messages=HI, stream=True, **with_it)
            *before, last = [chunk async for chunk in stream]
            assert last.usage
            assert (last.choices, last.usage.completion_tokens) == ([], 4)
            assert not any(chunk.usage for chunk in before)
            without = await chat.create(model="shop/architect", messages=HI, stream=True)
            assert not any([chunk.usage async for chunk in without])

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("chat", [True, False])
def test_a_client_that_stops_reading_stops_the_engine(
    kind: str, chat: bool, tmp_path: Path
) -> None:
    server = fake(kind, endless=True)

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            client = service.openai
            stream: Any = (
                await client.chat.completions.create(
                    model="shop/architect", messages=HI, stream=True
                )
                if chat
                else await client.completions.create(
                    model="shop/architect", prompt="p", stream=True
                )
            )
            await anext(aiter(stream))
            assert server.running == 1
            await stream.close()
            await until(lambda: server.running == 0, 1)

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_an_engine_that_fails_in_mid_answer_is_an_error_for_the_client(
    kind: str, tmp_path: Path
) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake(kind, break_after=2)}) as service:
            stream = await service.openai.chat.completions.create(
                model="shop/architect", messages=HI, stream=True
            )
            said = []
            with pytest.raises(openai.APIError, match=r"connection broke|before its end"):
                said += [chunk async for chunk in stream]

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("stream", [True, False])
def test_an_engine_that_fails_at_once_has_its_status(
    kind: str, stream: bool, tmp_path: Path
) -> None:
    server = fake(kind, refuse=(503, {"error": "LLM is unavailable."}))

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            with pytest.raises(openai.InternalServerError) as caught:
                await service.openai.chat.completions.create(
                    model="shop/architect", messages=HI, stream=stream
                )
            assert caught.value.status_code == 503
            assert caught.value.response.headers["retry-after"] == "2"
            assert caught.value.code == "engine_unavailable"

    asyncio.run(do())


def test_the_roles_are_the_models_and_an_unknown_one_is_told_of_them(tmp_path: Path) -> None:
    async def do() -> None:
        fakes = {"sentry": fake("vllm"), "architect": fake("triton-vllm")}
        async with running(tmp_path, fakes) as service:
            models = await service.openai.models.list()
            assert [model.id for model in models.data] == ["shop/architect", "shop/sentry"]
            assert (await service.openai.models.retrieve("shop/sentry")).id == "shop/sentry"
            with pytest.raises(
                openai.NotFoundError, match="known: shop/architect, shop/sentry"
            ) as caught:
                await service.openai.chat.completions.create(model="shop/m", messages=HI)
            assert (caught.value.code, caught.value.param) == ("model_not_found", "model")

    asyncio.run(do())


@pytest.mark.parametrize("kind", NATIVE)
def test_several_answers_have_seeds_of_their_own(kind: str, tmp_path: Path) -> None:
    server = fake(kind)

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            whole = await service.openai.chat.completions.create(
                model="shop/architect", messages=HI, n=3, seed=41
            )
            assert [choice.index for choice in whole.choices] == [0, 1, 2]
            text = str(server.seen)
            assert all(str(seed) in text for seed in (41, 42, 43))
            stream = await service.openai.completions.create(
                model="shop/architect", prompt=["a", "b"], n=2, stream=True
            )
            said = {0: "", 1: "", 2: "", 3: ""}
            async for chunk in stream:
                said[chunk.choices[0].index] += chunk.choices[0].text
            assert set(said.values()) == {"Hello, wörld!"}

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_client_that_does_not_stream_and_goes_stops_the_engine_too(
    kind: str, tmp_path: Path
) -> None:
    server = fake(kind)
    server.stall = True

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            asking = asyncio.create_task(
                service.openai.chat.completions.create(model="shop/architect", messages=HI)
            )
            await until(lambda: server.running == 1, 2)
            asking.cancel()
            await until(lambda: server.running == 0, 1)

    asyncio.run(do())


def test_a_stop_sequence_across_tokens_ends_the_answer(tmp_path: Path) -> None:
    server = fake("triton-batcher", tokens=["one", " two", " thr", "ee", " four"], endless=True)

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            stream = await service.openai.chat.completions.create(
                model="shop/architect", messages=HI, stop=["three"], stream=True
            )
            said = [chunk.choices[0].delta.content or "" async for chunk in stream]
            assert "".join(said) == "one two "
            await until(lambda: server.running == 0, 1)

    asyncio.run(do())
