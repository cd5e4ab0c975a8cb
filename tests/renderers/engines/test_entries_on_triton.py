"""Rendered entries of TensorRT-LLM's engines in a real Triton, on the stand-ins' models."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from components.providers.model_server import model_state
from components.providers.triton_client import NoAnswer, Rejected, TritonClient
from components.renderers import entry
from engines import engine
from engines.protocol import Delta, Request, Sampling, Upstream
from models.engine import part_name
from models.plan import Placement
from tests.declarations import SECTIONS, plan_of
from tests.renderers.engines.written import built_engines, image_models, write
from tests.sandbox.served import Gpus, gpus_and_models
from tests.sandbox.triton_serving import Triton, triton_serving

pytestmark = pytest.mark.triton
Result = TypeVar("Result")
LLMAPI, BATCHER = "triton-llmapi", "triton-batcher"
PROMPT = "Tell me about harbours"
SAYS = {LLMAPI: "tiny here, on", BATCHER: "prebuilt here, on"}


def placed(engine_name: str, demo: str = "shop") -> Placement:
    """Sentry under an engine; a quarter of what the weights leave free is its cache."""
    sections = copy.deepcopy(SECTIONS)
    sections["demo"]["name"] = demo
    sections["demo"]["roles"]["sentry"] |= {"engine": engine_name}
    small = {"weights": "tiny", "max_model_len": 4096, "gpu_memory_utilization": 0.25}
    return plan_of(sections, small=small | {"engine_dir": "built"}).roles["sentry"]


class Entries:
    """A Triton whose repository is written as a host's is, from what is rendered."""

    def __init__(self, triton: Triton, gpus: Gpus, image: Path) -> None:
        self.triton, self.gpus, self.image = triton, gpus, image

    def write(self, placement: Placement) -> None:
        write(placement, self.triton.repository, self.gpus, self.image)

    def ask(self, what: Callable[[TritonClient], Awaitable[Result]]) -> Result:
        async def do() -> Result:
            async with httpx.AsyncClient(base_url=self.triton.server.url) as http:
                return await what(TritonClient(http))

        return asyncio.run(do())

    def load(self, placement: Placement) -> None:
        self.ask(lambda triton: triton.load(placement.entry, timeout_s=30))

    def unload(self, placement: Placement) -> None:
        """Unload, and wait as Berth does until nothing of it is busy."""

        async def do(triton: TritonClient) -> None:
            await triton.unload(placement.entry)
            async with asyncio.timeout(20):
                while (  # noqa: ASYNC110 (Triton has to be asked)
                    await model_state(triton, placement.entry)
                ).state == "UNLOADING":
                    await asyncio.sleep(0.05)

        self.ask(do)

    def used_mib(self) -> int:
        return sum(self.gpus.used_mib())


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Entries]:
    place = tmp_path_factory.mktemp("entries")
    gpus = gpus_and_models(place / "gpus")
    built_engines(gpus.weights / "built")
    image = image_models(place / "image")
    with triton_serving(place / "triton", gpus) as found:
        yield Entries(found, gpus, image)


@pytest.fixture(params=[LLMAPI, BATCHER])
def loaded(entries: Entries, request: pytest.FixtureRequest) -> Iterator[Placement]:
    placement = placed(request.param)
    entries.write(placement)
    entries.load(placement)
    yield placement
    entries.unload(placement)


async def _said(triton: Triton, placement: Placement) -> tuple[str, str, int | None]:
    async with httpx.AsyncClient(trust_env=False) as http:
        asked = engine(placement.engine, http, Upstream(triton.server.url, placement.entry))
        request = Request(prompt=PROMPT, sampling=Sampling(max_tokens=6, temperature=0.0))
        whole = await asked.complete(request)
        events = [event async for event in asked.stream(request)]
        streamed = "".join(event.text for event in events if isinstance(event, Delta))
        return whole.text, streamed, whole.usage.completion_tokens


def test_what_is_rendered_loads_answers_and_streams(entries: Entries, loaded: Placement) -> None:
    whole, streamed, tokens = asyncio.run(_said(entries.triton, loaded))
    assert whole.startswith(SAYS[loaded.engine])
    assert streamed == whole
    assert tokens in (6, None)


def test_the_canary_asks_each_engine_by_its_own_names(entries: Entries, loaded: Placement) -> None:
    entries.ask(lambda triton: triton.token(loaded.entry, loaded.engine, timeout_s=10))


@pytest.mark.parametrize("other", [LLMAPI, BATCHER, "triton-vllm"])
def test_what_is_loaded_is_asked_as_it_is_whatever_comes_next(
    entries: Entries, loaded: Placement, other: str
) -> None:
    spoken = entries.ask(lambda triton: triton.speaks(loaded.entry, other))
    assert spoken == loaded.engine


def test_the_server_gives_the_digest_back(entries: Entries, loaded: Placement) -> None:
    config = entries.ask(lambda triton: triton.config(loaded.entry))
    assert config["parameters"]["berth_digest"]["string_value"] == entry.digest(loaded)


@pytest.mark.parametrize("kind", [LLMAPI, BATCHER])
def test_an_unload_gives_all_memory_back(entries: Entries, kind: str) -> None:
    placement = placed(kind)
    entries.write(placement)
    entries.load(placement)
    assert entries.used_mib() > 3000
    entries.unload(placement)
    assert entries.used_mib() == 0


def test_while_a_part_loads_the_model_counts_as_loading(entries: Entries) -> None:
    placement = placed(BATCHER)
    entries.write(placement)

    async def glance() -> str:
        # On a connection of its own each time: one that shares the load's thread gets no answer.
        async with httpx.AsyncClient(base_url=entries.triton.server.url) as http:
            try:
                return (await model_state(TritonClient(http), placement.entry, 0.5)).state
            except NoAnswer:
                return ""

    async def do(triton: TritonClient) -> set[str]:
        load = asyncio.create_task(triton.load(placement.entry, timeout_s=30))
        seen = {await glance()}
        while not load.done():
            seen.add(await glance())
        await load
        return seen

    assert "LOADING" in entries.ask(do)
    entries.unload(placement)


def test_two_demos_hold_the_same_model_side_by_side(entries: Entries) -> None:
    both = [placed(BATCHER, demo) for demo in ("shop", "stall")]
    for placement in both:
        entries.write(placement)
        entries.load(placement)
    entries.unload(both[0])
    entries.ask(lambda triton: triton.token(both[1].entry, BATCHER, timeout_s=10))
    entries.unload(both[1])
    assert entries.used_mib() == 0


def test_a_load_that_fails_leaves_no_part_behind(entries: Entries) -> None:
    placement = placed(BATCHER)
    entries.write(placement)
    engine_file = entries.gpus.weights / "built" / "rank0.engine"
    away = engine_file.rename(engine_file.with_suffix(".away"))
    try:
        with pytest.raises(Rejected, match="Error opening engine file"):
            entries.load(placement)
    finally:
        away.rename(engine_file)
    entries.unload(placement)
    index = entries.ask(lambda triton: triton.index())
    assert {state.state for state in index.values()} <= {"UNAVAILABLE", ""}


def test_an_image_without_tensorrt_llm_says_so(entries: Entries) -> None:
    placement = placed(LLMAPI, demo="bare")
    entries.write(placement)
    model = entries.triton.repository / placement.entry / "1" / "model.py"
    model.write_text(model.read_text().replace(str(entries.image), "/nowhere"))
    with pytest.raises(Rejected, match="the image holds no /nowhere/llmapi"):
        entries.load(placement)


def test_a_stream_that_is_cut_off_stops_behind_the_ensemble_at_once(entries: Entries) -> None:
    """Triton alone would generate its answer, a step for each of its tokens, to the end."""
    placement = placed(BATCHER)
    entries.write(placement)
    entries.load(placement)
    metrics = f"http://127.0.0.1:{entries.triton.metrics_port}/metrics"
    upstream = Upstream(entries.triton.server.url, placement.entry, metrics_url=metrics)
    tokens = 110
    sampling = Sampling(max_tokens=tokens, temperature=0.0)
    part = re.escape(part_name(placement.entry, "tensorrt_llm"))
    steps = re.compile(
        rf'^nv_trt_llm_general_metrics\{{.*"iteration_counter",model="{part}".*\}} (\S+)$',
        re.MULTILINE,
    )

    async def do() -> None:
        async with httpx.AsyncClient(trust_env=False) as http:

            async def stepped() -> float:
                (counted,) = steps.findall((await http.get(metrics)).text)
                return float(counted)

            asked = engine(BATCHER, http, upstream)
            before = await stepped()
            stream = asked.stream(Request(prompt="Tell me of quay 50", sampling=sampling))
            await anext(stream)
            assert (await asked.metrics()).requests_running == 1
            await asked.cancel(stream)
            async with asyncio.timeout(20):
                while (await asked.metrics()).requests_running:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert 0 < await stepped() - before < tokens

    asyncio.run(do())
    entries.unload(placement)


def test_whatever_becomes_of_its_requests_an_ensemble_can_be_unloaded(entries: Entries) -> None:
    """Triton alone now and then keeps a request whose client has gone."""
    placement = placed(BATCHER)
    entries.write(placement)
    entries.load(placement)
    upstream = Upstream(entries.triton.server.url, placement.entry)

    async def do() -> None:
        async with httpx.AsyncClient(trust_env=False) as http:
            asked = engine(BATCHER, http, upstream)

            async def cut(number: int) -> None:
                sampling = Sampling(max_tokens=200, temperature=0.0)
                stream = asked.stream(
                    Request(prompt=f"Tell me of quay {number}", sampling=sampling)
                )
                await anext(stream)
                await asked.cancel(stream)

            async def stopped(number: int) -> None:
                sampling = Sampling(max_tokens=200, temperature=0.0, stop=("a",))
                prompt = f"Tell me of ship {number}"
                async for _ in asked.stream(Request(prompt=prompt, sampling=sampling)):
                    pass

            async def given_up(number: int) -> None:
                sampling = Sampling(max_tokens=200, temperature=0.0)
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await asked.complete(Request(prompt=f"Of sea {number}", sampling=sampling))

            for number in range(6):
                await asyncio.gather(cut(number), stopped(number), given_up(number))

    asyncio.run(do())
    entries.unload(placement)
    assert entries.used_mib() == 0
