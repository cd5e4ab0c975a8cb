"""The native adapters on a real tritonserver, with simulated arithmetic behind its models."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from engines import engine
from engines.failure import EngineError
from engines.protocol import Delta, Engine, Event, Patience, Upstream
from engines.stream import Stream
from tests.engines.asking import asked, collected
from tests.engines.on_triton import models_on_triton
from tests.engines.serving import until
from tests.sandbox.triton_serving import Triton

pytestmark = pytest.mark.triton
KINDS = ["triton-vllm", "triton-llmapi"]


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Triton]:
    with models_on_triton(tmp_path_factory.mktemp("triton")) as found:
        yield found


@asynccontextmanager
async def adapter(triton: Triton, kind: str, model: str = "") -> AsyncIterator[Engine]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield engine(kind, http, Upstream(triton.server.url, model or kind), Patience(doubt_s=0.5))


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_and_a_whole_answer_are_the_same_text(triton: Triton, kind: str) -> None:
    async def do() -> None:
        async with adapter(triton, kind) as engine:
            request = asked("Tell me about harbours", max_tokens=12, seed=3, temperature=0.0)
            whole = await engine.complete(request)
            texts, end = await collected(engine, request)
            assert whole.text.startswith("tiny here, on")
            assert "".join(texts) == whole.text
            assert len(texts) == 12
            assert (end.finish_reason, whole.finish_reason) == ("length", "length")
            assert end.usage == whole.usage
            if kind == "triton-vllm":
                assert end.usage.completion_tokens == 12

    asyncio.run(do())


@pytest.mark.parametrize(
    ("kind", "stop", "text"),
    [
        ("triton-vllm", ", on", "tiny here"),
        ("triton-llmapi", ", on", "tiny here"),
        ("triton-llmapi", "re, o", "tiny he"),
    ],
)
def test_a_stop_sequence_ends_the_answer(triton: Triton, kind: str, stop: str, text: str) -> None:
    async def do() -> None:
        async with adapter(triton, kind) as engine:
            request = asked("Tell me about harbours", max_tokens=50, stop=(stop, "zzz"))
            texts, end = await collected(engine, request)
            assert ("".join(texts), end.finish_reason) == (text, "stop")
            assert (await engine.complete(request)).text == text

    asyncio.run(do())


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_stream_is_cancelled_in_the_engine(triton: Triton, kind: str) -> None:
    async def do() -> None:
        async with adapter(triton, kind) as engine:
            before = triton.server.said().lower().count("cancel")
            stream = engine.stream(asked("Tell me", max_tokens=2000))
            assert isinstance(await anext(stream), Delta)
            await engine.cancel(stream)
            await until(lambda: triton.server.said().lower().count("cancel") > before, 3)

    asyncio.run(do())


def test_too_long_a_prompt_is_the_clients_fault_streamed_or_not(triton: Triton) -> None:
    async def do() -> None:
        async with adapter(triton, "triton-vllm") as engine:
            request = asked("word " * 5000, max_tokens=5)
            for answer in (engine.complete(request), collected(engine, request)):
                with pytest.raises(EngineError) as caught:
                    await answer
                assert (caught.value.status, caught.value.code) == (400, "context_length_exceeded")

    asyncio.run(do())


def test_a_sampling_that_vllm_does_not_take_is_the_clients_fault(triton: Triton) -> None:
    async def do() -> None:
        async with adapter(triton, "triton-vllm") as engine:
            with pytest.raises(EngineError, match="refuses a sampling parameter") as caught:
                await engine.complete(asked(top_p=7.0))
            assert caught.value.status == 400

    asyncio.run(do())


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_not_there_is_unavailable(triton: Triton, kind: str) -> None:
    async def do() -> None:
        async with adapter(triton, kind, "nobody") as engine:
            assert not (await engine.ready()).ok
            for answer in (engine.complete(asked()), collected(engine, asked())):
                with pytest.raises(EngineError) as caught:
                    await answer
                assert (caught.value.status, caught.value.retry) == (503, True)

    asyncio.run(do())


def test_a_model_that_is_not_decoupled_answers_whole_and_says_why_it_does_not_stream(
    triton: Triton,
) -> None:
    async def do() -> None:
        async with adapter(triton, "triton-llmapi", "not-decoupled") as engine:
            assert (await engine.complete(asked(max_tokens=3))).text
            with pytest.raises(EngineError, match="does not stream") as caught:
                await collected(engine, asked(max_tokens=3))
            assert caught.value.status == 501

    asyncio.run(do())


def test_a_killed_backend_is_not_ready_though_triton_says_so(triton: Triton) -> None:
    async def do() -> None:
        async with adapter(triton, "triton-vllm", "killed") as engine:
            assert (await engine.ready()).ok
            async with engine.stream(asked(max_tokens=2000)) as stream:
                await anext(stream)
                _kill_stub(triton.repository / "killed")
                # Triton itself leaves the stream open for ever.
                with pytest.raises(EngineError, match="died in mid-answer"):
                    await asyncio.wait_for(_rest(stream), 20)
            assert (await engine.health()).ok
            assert triton.server.get("/v2/models/killed/ready").status_code == 200
            assert not (await engine.ready()).ok

    asyncio.run(do())


def test_the_version_is_tritons(triton: Triton) -> None:
    async def do() -> None:
        async with adapter(triton, "triton-vllm") as engine:
            version = await engine.version()
            assert (version.server, version.version) == ("triton", "2.51.0")

    asyncio.run(do())


async def _rest(stream: Stream) -> list[Event]:
    return [event async for event in stream]


def _kill_stub(entry: Path) -> None:
    pattern = f"triton_python_backend_stub {entry}/"
    found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, check=True)
    for pid in found.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
