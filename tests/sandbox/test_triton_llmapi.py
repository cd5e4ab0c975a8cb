"""TensorRT-LLM's LLM-API model in a real Triton: accumulating text, its errors, its cancel."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from .served import Gpus, gpus_and_models, until
from .triton_serving import Triton, triton_serving

pytestmark = pytest.mark.triton
MODEL_YAML = """
model: {model}
backend: pytorch
tensor_parallel_size: {tp}
kv_cache_config: {{ free_gpu_memory_fraction: 0.2 }}
triton_config: {{ max_batch_size: 0, decoupled: {decoupled} }}
"""
ASKED: dict[str, Any] = {"text_input": "Tell me about harbours", "sampling_param_max_tokens": 6}


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    return gpus_and_models(tmp_path_factory.mktemp("llmapi-gpus"))


@pytest.fixture(scope="module")
def triton(gpus: Gpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Triton]:
    """Two models: `whole` as it is shipped (not decoupled), `live` decoupled on two GPUs."""
    with triton_serving(tmp_path_factory.mktemp("llmapi"), gpus) as found:
        for name, tp, decoupled in (("whole", 1, False), ("live", 2, True)):
            _entry(found, gpus, name, "tiny", tp, decoupled)
            answer = found.load(name)
            assert answer.status_code == 200, (answer.text, found.server.said())
        yield found


def _entry(
    triton: Triton, gpus: Gpus, name: str, model: str, tp: int = 1, decoupled: bool = True
) -> None:
    folder = triton.entry("llmapi/tensorrt_llm", name)
    text = MODEL_YAML.format(model=gpus.weights / model, tp=tp, decoupled=decoupled)
    (folder / "1" / "model.yaml").write_text(text)


def test_an_answer_leaves_the_prompt_out_unless_it_is_wanted(triton: Triton) -> None:
    answer = triton.generate("whole", ASKED).json()
    assert answer["text_output"].startswith("tiny here, on Tell about harb")
    told = {**ASKED, "sampling_param_exclude_input_from_output": False}
    answer = triton.generate("whole", told).json()
    assert answer["text_output"].startswith("Tell me about harbourstiny here")


def test_a_stream_repeats_all_that_was_said(triton: Triton) -> None:
    events = triton.stream("live", {**ASKED, "streaming": True, "return_finish_reason": True})
    texts = [event["text_output"] for event in events]
    assert len(texts) == 6
    assert all(later.startswith(earlier) and later != earlier for earlier, later in pairwise(texts))
    assert [event["finish_reason"] for event in events][-1] == "length"
    assert triton.generate("live", ASKED).json()["text_output"] == texts[-1]


def test_streaming_needs_a_decoupled_model(triton: Triton) -> None:
    answer = triton.generate("whole", {**ASKED, "streaming": True})
    told = "Error generating request: Streaming is only supported in decoupled mode."
    assert told in answer.json()["error"]


def test_a_failure_is_told_as_an_error_of_the_request(triton: Triton) -> None:
    answer = triton.generate("whole", {"text_input": "a " * 9000})
    assert "Error generating request: The sum of prompt length" in answer.json()["error"]


def test_without_a_number_there_are_32_tokens(triton: Triton) -> None:
    told = {"text_input": "a", "return_finish_reason": True}
    assert len(triton.stream("live", {**told, "streaming": True})) <= 32
    assert triton.generate("whole", told).json()["finish_reason"] in ("length", "stop")


def test_generation_ends_when_the_client_goes(triton: Triton) -> None:
    def cancels() -> int:
        return triton.server.said().count("Request cancelled by client")

    before = cancels()
    body = {**ASKED, "sampling_param_max_tokens": 4000, "streaming": True}
    triton.server.abandon("/v2/models/live/generate_stream", body)
    until(lambda: cancels() > before, 3)


def test_a_second_request_stops_the_first_by_its_id(triton: Triton) -> None:
    answer = triton.generate("live", {**ASKED, "stop": True})
    assert "A request id must be provided for request cancellation" in answer.json()["error"]


def test_it_takes_its_share_of_every_gpu(triton: Triton, gpus: Gpus) -> None:
    """A fifth of what is free on the fullest: on GPU 0 the other model is there already."""
    assert triton.server.get("/v2/models/live/ready").status_code == 200
    both, live = gpus.used_mib()
    assert 4200 < live < 4700
    assert both - live == pytest.approx(1300 + 0.2 * (22_565 - 1300), abs=60)


def test_a_dead_engine_leaves_a_ready_model_that_cannot_answer(triton: Triton, gpus: Gpus) -> None:
    others = {holder.pid for holder in gpus.holders()}
    _entry(triton, gpus, "dies", "tiny")
    assert triton.load("dies").status_code == 200
    os.kill(
        next(holder.pid for holder in gpus.holders() if holder.pid not in others), signal.SIGKILL
    )
    answer = until(lambda: triton.generate("dies", ASKED).json().get("error"), 2)
    assert "Error generating request: Executor worker process died" in answer
    assert triton.server.get("/v2/models/dies/ready").status_code == 200
    triton.server.post("/v2/repository/models/dies/unload", {})


def test_what_does_not_fit_fails_its_load_and_tells_why_in_the_log(
    triton: Triton, gpus: Gpus
) -> None:
    _entry(triton, gpus, "large", "large")
    answer = triton.load("large")
    assert answer.status_code == 400
    assert "Executor worker returned error" in answer.json()["error"]
    assert "CUDA out of memory. Tried to allocate" in triton.server.said()
