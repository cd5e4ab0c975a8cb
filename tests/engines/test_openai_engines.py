"""Traps of vllm serve, trtllm-serve and Triton's OpenAI frontend."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from engines import engine
from engines.failure import EngineError
from engines.metrics import Metrics, Timing
from engines.protocol import Request, Upstream, Usage
from models.engine import BATCHER_PARTS, part_name
from tests.engines.asking import FRONTENDS, OPENAI, asked, collected, told
from tests.engines.fake_openai import FRONTEND_BATCHER, TRTLLM, VLLM, FakeOpenAi
from tests.engines.fake_triton import BATCHER_METRICS

CHAT = Request(messages=({"role": "user", "content": "hi"},))
VLLM_METRICS = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="architect"} 2.0
vllm:num_requests_running{engine="1",model_name="architect"} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="architect"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="architect"} 0.25
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="architect"} 1000.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="architect"} 500.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="architect"} 7.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="architect"} 2.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="architect"} 9.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="architect"} 4.5
vllm:time_to_first_token_seconds_count{engine="0",model_name="architect"} 9.0
"""


def metrics_of(server: FakeOpenAi) -> Metrics:
    async def do() -> Metrics:
        async with told(server) as engine:
            return await engine.metrics()

    return asyncio.run(do())


@pytest.mark.parametrize("kind", OPENAI)
def test_a_chat_streams_and_ends_with_its_usage(kind: str) -> None:
    async def do() -> None:
        async with told(FakeOpenAi(kind)) as engine:
            texts, end = await collected(engine, CHAT)
            assert texts == ["Hello", ",", " wörld", "!"]
            assert end.usage == Usage(3, 4)
            assert (await engine.complete(CHAT)).text == "Hello, wörld!"

    asyncio.run(do())


@pytest.mark.parametrize("kind", OPENAI)
def test_the_model_sent_is_the_engines_own_and_the_one_it_answers_with_is_ignored(
    kind: str,
) -> None:
    server = FakeOpenAi(kind, models=["architect", "worker"])

    async def do() -> None:
        async with told(server, model="worker") as engine:
            assert (await engine.complete(asked())).text
            assert server.seen[0]["model"] == "worker"

    asyncio.run(do())


@pytest.mark.parametrize("kind", [VLLM, TRTLLM])
def test_an_engine_that_answers_to_any_name_is_not_ready_for_one_it_does_not_list(
    kind: str,
) -> None:
    async def do() -> None:
        async with told(FakeOpenAi(kind, models=["other"])) as engine:
            ready = await engine.ready()
            assert ready.reason == "serves other, not m"

    asyncio.run(do())


def test_a_health_that_is_always_200_makes_nothing_ready() -> None:
    server = FakeOpenAi(TRTLLM, refuse=(400, {"object": "error", "message": "executor is gone"}))

    async def do() -> None:
        async with told(server) as engine:
            assert (await engine.health()).ok
            assert (await engine.ready()).reason == "no token: executor is gone"

    asyncio.run(do())


def test_a_finish_reason_that_openai_lacks_is_a_failure() -> None:
    async def do() -> None:
        async with told(FakeOpenAi(TRTLLM, finish="timeout")) as engine:
            with pytest.raises(EngineError, match="ended the answer: timeout"):
                await engine.complete(asked())
            with pytest.raises(EngineError, match="ended the answer: timeout"):
                await collected(engine, asked())

    asyncio.run(do())


@pytest.mark.parametrize("kind", FRONTENDS)
def test_the_frontends_stop_stays_a_stop_below_max_tokens(kind: str) -> None:
    async def do() -> None:
        async with told(FakeOpenAi(kind)) as engine:
            assert (await engine.complete(asked(max_tokens=5))).finish_reason == "stop"

    asyncio.run(do())


@pytest.mark.parametrize("content", ["not json", "[]", '{"choices": [3]}', '{"choices": 3}'])
def test_an_event_of_another_kind_is_a_broken_answer(content: str) -> None:
    async def app(_scope: object, _receive: object, send: object) -> None:
        assert callable(send)
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": f"data: {content}\n\n".encode()})

    async def do() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport) as http:
            with pytest.raises(EngineError) as caught:
                await collected(engine("vllm", http, Upstream("http://e", "m")), asked())
            assert caught.value.status == 502

    asyncio.run(do())


def test_vllms_metrics_are_summed_over_its_engines() -> None:
    found = metrics_of(FakeOpenAi(VLLM, metrics=VLLM_METRICS))
    assert found.known() == {
        "requests_running": 3,
        "requests_waiting": 4,
        "requests_done_total": 9,
        "prompt_tokens_total": 1000,
        "generation_tokens_total": 500,
        "kv_cache_share": 0.25,
        "time_to_first_token": Timing(4.5, 9),
    }


def test_before_the_batcher_requests_are_the_ensembles_and_tokens_its_parts() -> None:
    assert metrics_of(FakeOpenAi(FRONTEND_BATCHER, metrics=BATCHER_METRICS)) == Metrics(
        requests_running=3,
        requests_waiting=1,
        requests_done_total=5,
        generation_tokens_total=70,
        kv_cache_share=0.5,
    )


def test_the_parts_that_the_frontend_lists_beside_the_ensemble_are_no_trouble() -> None:
    listed = [*(part_name("m", part) for part in BATCHER_PARTS), "m"]

    async def do() -> None:
        async with told(FakeOpenAi(FRONTEND_BATCHER, models=listed)) as engine:
            assert (await engine.ready()).ok
        async with told(FakeOpenAi(FRONTEND_BATCHER, models=listed[:-1])) as engine:
            assert "not m" in (await engine.ready()).reason

    asyncio.run(do())


@pytest.mark.parametrize("prefix", ["", "trtllm_"])
def test_trtllms_metrics_are_read_with_either_prefix(prefix: str) -> None:
    text = (
        f'{prefix}request_success_total{{finished_reason="stop"}} 5.0\n'
        f"{prefix}time_to_first_token_seconds_sum 1.5\n"
        f"{prefix}time_to_first_token_seconds_count 5.0\n"
    )
    found = metrics_of(FakeOpenAi(TRTLLM, prometheus=text))
    assert found == Metrics(requests_done_total=5, time_to_first_token=Timing(1.5, 5))


def test_trtllms_json_metrics_that_reading_empties_are_kept() -> None:
    entry = {
        "numActiveRequests": 2,
        "numQueuedRequests": 1,
        "numCompletedRequests": 3,
        "kvCacheStats": {"usedNumBlocks": 25, "maxNumBlocks": 100},
    }
    server = FakeOpenAi(TRTLLM, iterations=[entry, entry | {"numActiveRequests": 4}])

    async def do() -> None:
        async with told(server) as engine:
            busy = await engine.metrics()
            assert busy == Metrics(4, 1, 6, kv_cache_share=0.25)
            idle = await engine.metrics()
            assert idle == Metrics(0, 0, 6, kv_cache_share=0.25)

    asyncio.run(do())


def test_trtllms_metrics_that_are_switched_off_say_nothing() -> None:
    assert metrics_of(FakeOpenAi(TRTLLM, iterations=[])) == Metrics()


@pytest.mark.parametrize(
    ("kind", "version"), [(VLLM, "1.2.3"), (TRTLLM, "1.2.3"), *((kind, None) for kind in FRONTENDS)]
)
def test_the_version_is_the_servers_own_word(kind: str, version: str | None) -> None:
    async def do() -> None:
        async with told(FakeOpenAi(kind)) as engine:
            assert (await engine.version()).version == version

    asyncio.run(do())
