"""The adapter for Triton's OpenAI frontend, on a stand-in for it before a real Triton."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest

from engines import engine
from engines.failure import EngineError
from engines.protocol import Engine, Request, Upstream
from tests.engines.asking import asked, collected
from tests.sandbox.served import Server, free_port, gpus_and_models, served, wait_until_heard
from tests.sandbox.unpacked_triton import path_with_triton

pytestmark = pytest.mark.triton
CONFIG = (
    'backend: "vllm"\ninstance_group [ { count: 1 kind: KIND_MODEL } ]\n'
    'parameters { key: "REPORT_CUSTOM_METRICS" value: { string_value: "true" } }\n'
)


@pytest.fixture(scope="module")
def frontend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("frontend")
    gpus = gpus_and_models(tmp_path_factory.mktemp("gpus"))
    folder = place / "repository" / "m" / "1"
    folder.mkdir(parents=True)
    (folder.parent / "config.pbtxt").write_text(CONFIG)
    model, port = str(gpus.weights / "tiny"), free_port()
    about = {"model": model, "gpu_memory_utilization": 0.2, "max_model_len": 4096}
    (folder / "model.json").write_text(json.dumps(about))
    words = [f"--model-repository={place / 'repository'}", f"--tokenizer={model}"]
    words += ["--host=127.0.0.1", f"--openai-port={port}", "--backend=vllm"]
    path = path_with_triton(place)
    with served("sandbox.openai_frontend.main", words, gpus, place, port, PATH=path) as server:
        yield wait_until_heard(server)


@asynccontextmanager
async def adapter(frontend: Server, model: str = "m") -> AsyncIterator[Engine]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield engine("triton-openai", http, Upstream(frontend.url, model))


def test_an_answer_that_it_cut_says_length_whole_and_streamed(frontend: Server) -> None:
    async def do() -> None:
        async with adapter(frontend) as engine:
            sampling = asked(max_tokens=7, temperature=0.0).sampling
            messages = ({"role": "user", "content": "Tell me about harbours"},)
            for request in (
                Request(prompt="Tell me about harbours", sampling=sampling),
                Request(messages=messages, sampling=sampling),
            ):
                whole = await engine.complete(request)
                texts, end = await collected(engine, request)
                assert "".join(texts) == whole.text
                assert whole.text.startswith("tiny here")
                assert (whole.finish_reason, end.finish_reason) == ("length", "length")
                assert end.usage == whole.usage

    asyncio.run(do())


def test_it_is_ready_for_its_model_and_for_no_other(frontend: Server) -> None:
    async def do() -> None:
        async with adapter(frontend) as engine:
            assert (await engine.ready()).ok
        async with adapter(frontend, "other") as engine:
            assert (await engine.ready()).reason == "serves m, not other"
            for answer in (engine.complete(asked()), collected(engine, asked())):
                with pytest.raises(EngineError) as caught:
                    await answer
                assert caught.value.status == 503

    asyncio.run(do())


def test_its_metrics_are_tritons_for_that_model(frontend: Server) -> None:
    async def do() -> None:
        async with adapter(frontend) as engine:
            before = (await engine.metrics()).requests_done_total or 0
            await engine.complete(asked(max_tokens=5))
            found = await engine.metrics()
            assert found.requests_done_total == before + 1
            assert found.generation_tokens_total

    asyncio.run(do())
