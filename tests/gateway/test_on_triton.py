"""The service in front of a real tritonserver, asked by the official client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from gateway.service import application
from tests.engines.on_triton import models_on_triton
from tests.engines.serving import serving, until
from tests.gateway.running import weights, write
from tests.sandbox.triton_serving import Triton

pytestmark = pytest.mark.triton
HI: Any = [{"role": "user", "content": "Tell me about harbours"}]
KINDS = ["triton-vllm", "triton-llmapi"]


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Triton]:
    with models_on_triton(tmp_path_factory.mktemp("triton")) as found:
        yield found


@asynccontextmanager
async def client(triton: Triton, place: Path) -> AsyncIterator[openai.AsyncOpenAI]:
    routes = {
        kind: {
            "engine": kind,
            "base_url": triton.server.url,
            "model": kind,
            "weights": str(weights(place / kind)),
        }
        for kind in KINDS
    }
    write(place / "adapter", routes)
    async with (
        serving(application(place / "adapter")) as base,
        httpx.AsyncClient(trust_env=False, timeout=20) as http,
    ):
        yield openai.AsyncOpenAI(
            base_url=f"{base}/v1", api_key="-", max_retries=0, http_client=http
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_chat_is_answered_whole_and_streamed_alike(
    triton: Triton, kind: str, tmp_path: Path
) -> None:
    async def do() -> None:
        async with client(triton, tmp_path) as to:
            asked: Any = {
                "model": f"shop/{kind}",
                "messages": HI,
                "max_tokens": 9,
                "temperature": 0,
            }
            whole = await to.chat.completions.create(**asked)
            said = whole.choices[0].message.content or ""
            assert said.startswith("tiny here, on")
            assert whole.choices[0].finish_reason == "length"
            stream = await to.chat.completions.create(**asked, stream=True)
            assert "".join([c.choices[0].delta.content or "" async for c in stream]) == said

    asyncio.run(do())


@pytest.mark.parametrize("kind", KINDS)
def test_streams_that_clients_cut_are_cancelled_in_the_engine(
    triton: Triton, kind: str, tmp_path: Path
) -> None:
    def cancelled() -> int:
        return triton.server.said().lower().count("cancel")

    async def do() -> None:
        async with client(triton, tmp_path) as to:
            before = cancelled()

            async def cut(tokens: int) -> None:
                stream = await to.chat.completions.create(
                    model=f"shop/{kind}", messages=HI, max_tokens=3000, stream=True
                )
                chunks = aiter(stream)
                for _ in range(tokens):
                    await anext(chunks)
                await stream.close()

            await asyncio.gather(*(cut(1 + number % 5) for number in range(8)))
            await until(lambda: cancelled() >= before + 8, 20)

    asyncio.run(do())


def test_too_long_a_chat_is_the_clients_fault(triton: Triton, tmp_path: Path) -> None:
    async def do() -> None:
        async with client(triton, tmp_path) as to:
            long: Any = [{"role": "user", "content": "word " * 5000}]
            for stream in (True, False):
                with pytest.raises(openai.BadRequestError) as caught:
                    await to.chat.completions.create(
                        model="shop/triton-vllm", messages=long, stream=stream
                    )
                assert caught.value.code == "context_length_exceeded"

    asyncio.run(do())
