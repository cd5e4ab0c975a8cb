"""Traps of Triton's generate extension and of the models behind it."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from engines import engine
from engines.failure import EngineError
from engines.metrics import Metrics, Timing
from engines.protocol import Upstream
from tests.engines.asking import NATIVE, adapter, asked, collected, told
from tests.engines.fake_triton import BATCHER, BATCHER_METRICS, LLMAPI, VLLM, FakeTriton
from tests.engines.serving import until

METRICS = """
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="m",version="1"} 6
nv_inference_request_success{model="other",version="1"} 100
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="m",version="1"} 2
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model="m",version="1"} 40
vllm:generation_tokens_total{model="other",version="1"} 900
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{model="m",version="1",le="+Inf"} 6
vllm:time_to_first_token_seconds_sum{model="m",version="1"} 0.5
vllm:time_to_first_token_seconds_count{model="m",version="1"} 6
"""


def test_a_model_that_is_ready_while_its_process_is_dead_is_not() -> None:
    server = FakeTriton(VLLM)

    async def do() -> None:
        async with told(server) as engine:
            assert (await engine.ready()).ok
            server.stub_killed = True
            assert (await engine.health()).ok
            said = await engine.ready()
            assert said.reason == "no token: Stub process 'm_0_0' is not healthy."

    asyncio.run(do())


@pytest.mark.parametrize("kind", NATIVE)
def test_the_prompt_is_no_part_of_the_answer(kind: str) -> None:
    async def do() -> None:
        async with told(FakeTriton(kind)) as engine:
            assert (await engine.complete(asked("Say hello"))).text == "Hello, wörld!"

    asyncio.run(do())


def test_vllms_sampling_is_one_json_text_under_vllms_names() -> None:
    server = FakeTriton(VLLM)

    async def do() -> None:
        async with told(server) as engine:
            await engine.complete(asked(max_tokens=5, top_k=3, stop=("x",)))
        said = json.loads(server.seen[0]["sampling_parameters"])
        assert said == {"max_tokens": 5, "top_k": 3, "stop": ["x"]}

    asyncio.run(do())


def test_the_inflight_batcher_always_gets_the_max_tokens_that_it_requires() -> None:
    server = FakeTriton(BATCHER)

    async def do() -> None:
        async with told(server) as engine:
            await engine.complete(asked())
            assert server.seen[0]["max_tokens"] == 16
            assert "stop_words" not in server.seen[0]

    asyncio.run(do())


@pytest.mark.parametrize("kind", NATIVE)
def test_an_error_in_a_200_is_an_error(kind: str) -> None:
    reason = "generate expects model to produce exactly 1 response, use generate stream"

    async def do() -> None:
        async with told(FakeTriton(kind, refuse=(200, {"error": reason}))) as engine:
            with pytest.raises(EngineError, match="exactly 1 response"):
                await engine.complete(asked())

    asyncio.run(do())


@pytest.mark.parametrize("kind", NATIVE)
def test_a_first_error_of_a_stream_has_its_status_and_its_words(kind: str) -> None:
    too_long = {"error": "Error: longer than the maximum model length of 9"}

    async def do() -> None:
        async with told(FakeTriton(kind, refuse=(500, too_long))) as engine:
            with pytest.raises(EngineError, match="longer than") as caught:
                await collected(engine, asked())
            assert caught.value.status == 400

    asyncio.run(do())


def test_a_model_that_is_not_decoupled_says_why_it_does_not_stream() -> None:
    said = {"error": "Error generating request: Streaming is only supported in decoupled mode."}

    async def do() -> None:
        async with told(FakeTriton(LLMAPI, refuse=(500, said))) as engine:
            with pytest.raises(EngineError, match=r"`decoupled` is false in its model\.yaml"):
                await collected(engine, asked())

    asyncio.run(do())


def test_a_stop_sequence_that_the_engine_takes_out_at_the_end_is_not_sent() -> None:
    texts = ["one", "one tw", "one two E", "one two "]

    async def do() -> list[str]:
        def answer(_: httpx.Request) -> httpx.Response:
            ends = ["None", "None", "None", "stop"]
            said = zip(texts, ends, strict=True)
            events = [{"text_output": text, "finish_reason": end} for text, end in said]
            content = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
            return httpx.Response(200, text=content, headers={"content-type": "text/event-stream"})

        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            adapter = engine("triton-llmapi", http, Upstream("http://e", "m"))
            return (await collected(adapter, asked(stop=("END",))))[0]

    assert "".join(asyncio.run(do())) == "one two "


def test_a_growing_text_is_told_as_its_growth_and_half_a_character_waits() -> None:
    """The fake gives the whole text each time; these texts replace what it makes of tokens."""
    texts = ["Gr", "Gr\ufffd", "Grü", "Grüß"]

    async def do() -> list[str]:
        def answer(_: httpx.Request) -> httpx.Response:
            ends = ["None", "None", "None", "stop"]
            events = [
                f"data: {json.dumps({'text_output': text, 'finish_reason': end})}\n\n"
                for text, end in zip(texts, ends, strict=True)
            ]
            headers = {"content-type": "text/event-stream"}
            return httpx.Response(200, text="".join(events), headers=headers)

        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            adapter = engine("triton-llmapi", http, Upstream("http://e", "m"))
            return (await collected(adapter, asked()))[0]

    assert asyncio.run(do()) == ["Gr", "ü", "ß"]
    texts[2] = "Anders"
    with pytest.raises(EngineError, match="changed text"):
        asyncio.run(do())


@pytest.mark.parametrize("kind", NATIVE)
def test_a_stop_sequence_that_the_engine_misses_ends_answer_and_generation(kind: str) -> None:
    server = FakeTriton(kind, tokens=["one", " two", " thr", "ee", " four"], endless=True)

    async def do() -> None:
        async with adapter(server) as engine:
            texts, end = await collected(engine, asked(max_tokens=999, stop=("three",)))
            assert "".join(texts) == "one two "
            assert end.finish_reason == "stop"
            await until(lambda: server.running == 0, 1)
            server.endless = False
            whole = await engine.complete(asked(max_tokens=999, stop=("three",)))
            assert (whole.text, whole.finish_reason) == ("one two ", "stop")

    asyncio.run(do())


def test_shapes_with_a_batch_dimension_are_read() -> None:
    said = {"text_output": [["Hi"]], "num_output_tokens": [[1]], "num_input_tokens": [2]}

    async def do() -> None:
        async with told(FakeTriton(BATCHER, refuse=(200, said))) as engine:
            answer = await engine.complete(asked(max_tokens=9))
            assert (answer.text, answer.usage.completion_tokens) == ("Hi", 1)

    asyncio.run(do())


@pytest.mark.parametrize("kind", [VLLM, LLMAPI])
def test_metrics_are_the_models_own(kind: str) -> None:
    async def do() -> None:
        async with told(FakeTriton(kind, metrics=METRICS)) as engine:
            assert await engine.metrics() == Metrics(
                requests_waiting=2,
                requests_done_total=6,
                generation_tokens_total=40,
                time_to_first_token=Timing(0.5, 6),
            )

    asyncio.run(do())


def test_the_inflight_batchers_metrics_have_berths_names() -> None:
    async def do() -> None:
        async with told(FakeTriton(BATCHER, metrics=BATCHER_METRICS)) as engine:
            assert await engine.metrics() == Metrics(
                requests_running=3,
                requests_waiting=1,
                requests_done_total=5,
                generation_tokens_total=70,
                kv_cache_share=0.5,
            )

    asyncio.run(do())


def test_without_an_address_for_metrics_nothing_is_known() -> None:
    async def do() -> None:
        async with httpx.AsyncClient() as http:
            assert await engine(VLLM, http, Upstream("http://e", "m")).metrics() == Metrics()

    asyncio.run(do())
