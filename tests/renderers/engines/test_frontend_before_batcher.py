"""The rendered server of Triton's OpenAI frontend before the batcher's rendered entries.

A stand-in for the frontend, before a real Triton with the stand-in engine.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from components.providers.engine_canary import canary
from components.renderers.engines import SERVERS, triton_openai
from engines import engine
from engines.failure import EngineError
from engines.protocol import Engine, Request, Upstream
from models.engine import BATCHER_PARTS, part_name
from models.plan import Placement
from tests.engines.asking import asked, collected
from tests.renderers.engines.served import placed
from tests.renderers.engines.written import built_engines, image_models, write
from tests.sandbox.served import (
    Gpus,
    Server,
    free_port,
    gpus_and_models,
    served,
    until,
    wait_until_heard,
)
from tests.sandbox.unpacked_triton import path_with_triton

pytestmark = pytest.mark.triton
ENGINE = "triton-openai-batcher"
SMALL: dict[str, Any] = {"weights": "tiny", "quantization": None, "gpu_memory_utilization": 0.25}
ONE = placed(ENGINE, **SMALL | {"tensor_parallel_size": 1, "engine_dir": "built-1"})
TWO = placed(ENGINE, **SMALL | {"engine_dir": "built-2"})
LONG = "Tell me of quay 50"
"""Its answer has more than a hundred tokens, a second's worth."""


@dataclass
class Host:
    """Where the rendered command line is carried out."""

    gpus: Gpus
    repository: Path
    path: str

    def server(
        self, placement: Placement, place: Path, **environment: str
    ) -> AbstractContextManager[Server]:
        """What is rendered, on paths and a port of this test."""
        port = free_port()
        program, main, *words = SERVERS[placement.engine].command(placement)
        assert (program, main) == ("python3", triton_openai.MAIN)
        host = placement.instance.host
        changed = {
            host.repository: str(self.repository),
            host.weights: str(self.gpus.weights),
            "--host=0.0.0.0": "--host=127.0.0.1",
            f"--openai-port={triton_openai.INSIDE}": f"--openai-port={port}",
        }
        for old, new in changed.items():
            words = [word.replace(old, new) for word in words]
        module = "sandbox.openai_frontend.main"
        return served(module, words, self.gpus, place, port, PATH=self.path, **environment)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """Both models' engines are built; the entries are those of the narrow one."""
    place = tmp_path_factory.mktemp("before-batcher")
    gpus = gpus_and_models(place / "gpus")
    for ranks in (1, 2):
        built_engines(gpus.weights / f"built-{ranks}", ranks)
    made = Host(gpus, place / "repository", path_with_triton(place))
    write(ONE, made.repository, gpus, image_models(place / "image"))
    return made


@pytest.fixture(scope="module")
def frontend(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    told = SERVERS[ENGINE].environment(ONE)
    with host.server(ONE, tmp_path_factory.mktemp("one"), **told) as server:
        yield wait_until_heard(server)


@asynccontextmanager
async def adapter(frontend: Server) -> AsyncIterator[Engine]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield engine(ENGINE, http, Upstream(frontend.url, ONE.entry))


def test_the_parts_come_with_the_ensemble_that_is_named(frontend: Server) -> None:
    listed = {row["id"] for row in frontend.get("/v1/models").json()["data"]}
    assert listed == {ONE.entry, *(part_name(ONE.entry, part) for part in BATCHER_PARTS)}


def test_an_answer_is_without_its_prompt_counted_and_cut_alike_however_it_is_asked_for(
    frontend: Server,
) -> None:
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
                assert whole.text.startswith("prebuilt here")
                assert (whole.finish_reason, end.finish_reason) == ("length", "length")
                assert end.usage == whole.usage
                assert whole.usage.completion_tokens == 7

    asyncio.run(do())


def test_a_stop_word_ends_an_answer(frontend: Server) -> None:
    body = {"model": ONE.entry, "prompt": "Tell me about harbours", "max_tokens": 40}
    whole, cut = (
        frontend.post("/v1/completions", body | stop).json()["choices"][0]["text"]
        for stop in ({}, {"stop": ["harbours"]})
    )
    assert whole.startswith(cut)
    assert "harbours" not in cut


def test_the_canary_lets_it_pass(frontend: Server) -> None:
    async def do() -> None:
        async with adapter(frontend) as engine:
            assert (await engine.ready()).ok
            assert await canary(engine, 20) is None

    asyncio.run(do())


def test_a_context_that_is_too_long_is_told_as_the_clients_fault(frontend: Server) -> None:
    async def do() -> None:
        async with adapter(frontend) as engine:
            with pytest.raises(EngineError, match="max_seq_len") as caught:
                await engine.complete(asked("word " * 5000, max_tokens=5))
            assert caught.value.code == "context_length_exceeded"

    asyncio.run(do())


def test_generation_runs_on_when_the_client_goes_and_the_metrics_show_it(frontend: Server) -> None:
    running = re.compile(r'^nv_trt_llm_request_metrics\{.*"active".*\} (\S+)$', re.MULTILINE)
    body: dict[str, Any] = {"model": ONE.entry, "prompt": LONG, "max_tokens": 110, "stream": True}

    async def counted() -> tuple[int | None, int | None]:
        async with adapter(frontend) as engine:
            found = await engine.metrics()
            return found.requests_running, found.requests_done_total

    def active() -> bool:
        (number,) = running.findall(frontend.get("/metrics").text)
        return float(number) > 0

    until(lambda: not active(), 5)
    _, before = asyncio.run(counted())
    assert before is not None
    frontend.abandon("/v1/completions", body, lambda: until(active, 5))
    assert asyncio.run(counted()) == (1, before)
    until(lambda: asyncio.run(counted()) == (0, before + 1), 10)


def test_on_two_gpus_it_starts_as_it_is_told_to_and_not_without(host: Host, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    write(TWO, repository, host.gpus, image_models(tmp_path / "image"))
    wide = Host(host.gpus, repository, host.path)
    told = dict(SERVERS[ENGINE].environment(TWO))
    with wide.server(TWO, tmp_path, **told) as server:
        wait_until_heard(server)
        answer = server.post("/v1/completions", {"model": TWO.entry, "prompt": "a berth"})
        assert answer.json()["choices"][0]["text"].startswith("prebuilt here")
        assert all(host.gpus.used_mib())
    with wide.server(TWO, tmp_path, **told | {"TRTLLM_ORCHESTRATOR": "0"}) as server:
        assert server.wait(30) == 1
        assert "MPI worldSize is expected to be equal to tp*pp*cp" in server.said()
