"""The OpenAI adapters on servers that were written after the same facts by somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest

from engines import engine
from engines.failure import EngineError
from engines.protocol import Delta, End, Engine, Request, Upstream
from tests.engines.asking import asked, collected
from tests.engines.serving import until
from tests.sandbox.served import Gpus, Server, free_port, gpus_and_models, served, wait_until_heard

CHAT = Request(messages=({"role": "user", "content": "Tell me about harbours"},))
MODELS = {"vllm": "worker", "trtllm-serve": "tiny"}
KINDS = sorted(MODELS)


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    return gpus_and_models(tmp_path_factory.mktemp("gpus"))


@pytest.fixture(scope="module")
def servers(gpus: Gpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """A GPU and a server for each engine."""
    place = tmp_path_factory.mktemp("servers")
    model, first, second = str(gpus.weights / "tiny"), free_port(), free_port()
    vllm = ["serve", model, "--host=127.0.0.1", f"--port={first}", "--max-model-len=4096"]
    vllm += ["--served-model-name", "architect", "worker", "--gpu-memory-utilization=0.3"]
    options = place / "options.yaml"
    options.write_text("return_perf_metrics: true\n")
    trtllm = [model, "--host=127.0.0.1", f"--port={second}", "--max_seq_len=4096"]
    trtllm += [f"--extra_llm_api_options={options}"]
    with (
        served("sandbox.vllm_serve", vllm, gpus, place, first, CUDA_VISIBLE_DEVICES="0") as one,
        served(
            "sandbox.trtllm_serve", trtllm, gpus, place, second, CUDA_VISIBLE_DEVICES="1"
        ) as two,
    ):
        yield {"vllm": wait_until_heard(one), "trtllm-serve": wait_until_heard(two)}


@asynccontextmanager
async def adapter(servers: dict[str, Server], kind: str, model: str = "") -> AsyncIterator[Engine]:
    async with httpx.AsyncClient(trust_env=False) as http:
        upstream = Upstream(servers[kind].url, model or MODELS[kind])
        yield engine(kind, http, upstream)


@pytest.mark.parametrize("kind", KINDS)
def test_a_chat_and_a_prompt_are_answered_whole_and_streamed_alike(
    servers: dict[str, Server], kind: str
) -> None:
    async def do() -> None:
        async with adapter(servers, kind) as engine:
            prompt = asked("Tell me about harbours", max_tokens=9, temperature=0.0)
            chat = Request(messages=CHAT.messages, sampling=prompt.sampling)
            for request in (prompt, chat):
                whole = await engine.complete(request)
                texts, end = await collected(engine, request)
                assert whole.text.startswith("tiny here, on")
                assert "".join(texts) == whole.text
                assert end == End(whole.finish_reason, whole.usage)
                assert (end.finish_reason, end.usage.completion_tokens) == ("length", 9)

    asyncio.run(do())


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_served_is_ready_and_another_is_not(
    servers: dict[str, Server], kind: str
) -> None:
    async def do() -> None:
        async with adapter(servers, kind) as engine:
            assert (await engine.health()).ok
            assert (await engine.ready()).ok
            assert (await engine.version()).version in ("0.32.0", "1.2.1")
        async with adapter(servers, kind, "other") as engine:
            assert "not other" in (await engine.ready()).reason

    asyncio.run(do())


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_cancel_the_engine_makes_no_more_tokens(
    servers: dict[str, Server], kind: str
) -> None:
    async def do() -> None:
        async with adapter(servers, kind) as engine:
            last = -1

            async def still() -> bool:
                """Tokens rather than requests: trtllm-serve counts those when it steps only."""
                nonlocal last
                await asyncio.sleep(0.1)
                before, last = last, (await engine.metrics()).generation_tokens_total or 0
                return before == last

            stream = engine.stream(asked("Tell me", max_tokens=3500))
            assert isinstance(await anext(stream), Delta)
            assert not await still()
            assert not await still()
            await engine.cancel(stream)
            await until(still, 3)
            assert 0 < last < 3500

    asyncio.run(do())


@pytest.mark.parametrize("kind", KINDS)
def test_too_many_tokens_are_the_clients_fault(servers: dict[str, Server], kind: str) -> None:
    async def do() -> None:
        async with adapter(servers, kind) as engine:
            for answer in (
                engine.complete(asked("word " * 5000, max_tokens=5)),
                collected(engine, asked("word " * 5000, max_tokens=5)),
            ):
                with pytest.raises(EngineError) as caught:
                    await answer
                assert caught.value.status == 400

    asyncio.run(do())


def test_a_name_that_vllm_does_not_serve_is_unavailable(servers: dict[str, Server]) -> None:
    async def do() -> None:
        async with adapter(servers, "vllm", "nope") as engine:
            with pytest.raises(EngineError, match="does not hold the model") as caught:
                await engine.complete(asked(max_tokens=3))
            assert caught.value.status == 503

    asyncio.run(do())
