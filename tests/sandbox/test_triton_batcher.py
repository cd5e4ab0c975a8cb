"""TensorRT-LLM's inflight batcher in a real Triton: the ensemble's names, its deltas and counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sandbox.trtllm_triton import token_ids

from .served import Gpus, free_port, gpus_and_models, served, until, wait_until_heard
from .triton_serving import Triton, triton_serving

PARTS = ("preprocessing", "postprocessing", "tensorrt_llm", "ensemble")
ASKED: dict[str, Any] = {
    "text_input": "Tell me about harbours",
    "max_tokens": 6,
    "exclude_input_in_output": True,
}


def _engine_dir(place: Path) -> Path:
    """A prebuilt engine of 2 GiB, as trtllm-build leaves it (a hole)."""
    place.mkdir()
    pretrained = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4}
    pretrained |= {"hidden_size": 512, "head_size": 64, "max_position_embeddings": 8192}
    told = {"pretrained_config": {"name": "prebuilt", **pretrained}}
    told["build_config"] = {"max_seq_len": 4096}
    (place / "config.json").write_text(json.dumps(told))
    with (place / "rank0.engine").open("wb") as file:
        file.truncate(2 * 2**30)
    return place


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    return gpus_and_models(tmp_path_factory.mktemp("batcher-gpus"))


def _active(triton: Triton, model: str = "tensorrt_llm") -> str:
    line = f'nv_trt_llm_request_metrics{{model="{model}",request_type="active",version="1"}}'
    return next(row.split()[-1] for row in triton.metrics().splitlines() if line in row)


@pytest.fixture(scope="module")
def filled(gpus: Gpus, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the templates leave open; the engine goes to GPU 1."""
    place = tmp_path_factory.mktemp("engine")
    return {
        "triton_max_batch_size": "8",
        "preprocessing_instance_count": "1",
        "postprocessing_instance_count": "1",
        "triton_backend": "tensorrtllm",
        "decoupled_mode": "True",
        "batching_strategy": "inflight_fused_batching",
        "engine_dir": str(_engine_dir(place / "engine")),
        "kv_cache_free_gpu_mem_fraction": "0.5",
        "gpu_device_ids": "1",
        "exclude_input_in_output": "True",
        "tokenizer_dir": str(gpus.weights / "tiny"),
    }


@pytest.fixture(scope="module")
def triton(
    gpus: Gpus, filled: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Triton]:
    """All parts loaded."""
    with triton_serving(tmp_path_factory.mktemp("batcher") / "triton", gpus) as found:
        for part in PARTS:
            found.entry(f"inflight_batcher_llm/{part}", part, **filled)
            answer = found.load(part)
            assert answer.status_code == 200, (answer.text, found.server.said())
        yield found


@pytest.mark.parametrize(
    "text", ["a berth", "  two  quays, one crane!\n", "Überfahrt – 渡し舟", ""]
)
def test_ids_are_the_text_again(text: str) -> None:
    assert token_ids.decode(token_ids.encode(text, bos=True)) == text


@pytest.mark.triton
def test_the_ensemble_answers_with_text_and_counts(triton: Triton) -> None:
    answer = triton.generate("ensemble", ASKED).json()
    assert answer["text_output"].startswith("prebuilt here, on Tell about harb")
    assert (answer["num_input_tokens"], answer["num_output_tokens"]) == (5, 6)


@pytest.mark.triton
def test_the_prompt_comes_first_unless_it_is_left_out(triton: Triton) -> None:
    answer = triton.generate("ensemble", {**ASKED, "exclude_input_in_output": False}).json()
    assert answer["text_output"].startswith("Tell me about harboursprebuilt here")


@pytest.mark.triton
def test_a_stream_sends_what_is_new(triton: Triton) -> None:
    events = triton.stream("ensemble", {**ASKED, "stream": True})
    assert len(events) == 6
    said = "".join(event["text_output"] for event in events)
    assert said == triton.generate("ensemble", ASKED).json()["text_output"]


@pytest.mark.triton
def test_a_stop_word_ends_the_answer_before_it(triton: Triton) -> None:
    answer = triton.generate("ensemble", {**ASKED, "stop_words": ["harbours"]}).json()
    assert answer["text_output"] == "prebuilt here, on Tell about "


@pytest.mark.triton
def test_max_tokens_is_needed(triton: Triton) -> None:
    answer = triton.generate("ensemble", {"text_input": "a"})
    assert answer.status_code == 400
    assert "max_tokens" in answer.json()["error"]


LONG = "Tell me of quay 50"
"""Its answer has more than a hundred tokens, a second's worth."""


@pytest.mark.triton
def test_the_engine_stops_when_its_own_client_goes(triton: Triton) -> None:
    ids = token_ids.encode(LONG, bos=True)
    body = {"input_ids": ids, "input_lengths": len(ids), "request_output_len": 110}
    until(lambda: _active(triton) == "0", 2)
    running = partial(until, lambda: _active(triton) == "1", 1)
    path = "/v2/models/tensorrt_llm/generate_stream"
    triton.server.abandon(path, {**body, "streaming": True}, running)
    until(lambda: _active(triton) == "0", 0.5)


@pytest.mark.triton
def test_behind_an_ensemble_the_engine_does_not_learn_that_the_client_went(triton: Triton) -> None:
    """Triton 2.51 itself looks for that only between an ensemble's steps (server#6739)."""
    body = {**ASKED, "text_input": LONG, "max_tokens": 110, "stream": True}
    assert len(triton.stream("ensemble", body)) > 100
    until(lambda: _active(triton) == "0", 2)
    running = partial(until, lambda: _active(triton) == "1", 1)
    triton.server.abandon("/v2/models/ensemble/generate_stream", body, running)
    with pytest.raises(AssertionError):
        until(lambda: _active(triton) == "0", 0.5)
    until(lambda: _active(triton) == "0", 3)


@pytest.mark.triton
def test_a_second_request_to_the_engine_stops_the_first_of_its_id(
    triton: Triton, filled: dict[str, str]
) -> None:
    """Of an engine that is not decoupled: HTTP's infer, which carries ids, takes no other."""
    changed = {**filled, "decoupled_mode": "False", "gpu_device_ids": "0"}
    triton.entry("inflight_batcher_llm/tensorrt_llm", "still", **changed)
    assert triton.load("still").status_code == 200
    ids = token_ids.encode("a berth", bos=True)
    tensors: list[tuple[str, str, list[Any]]] = [("input_ids", "INT32", ids)]
    tensors += [("input_lengths", "INT32", [len(ids)]), ("request_output_len", "INT32", [100])]

    def infer(*more: tuple[str, str, list[Any]]) -> dict[str, Any]:
        inputs = [
            {"name": name, "datatype": kind, "shape": [1, len(data)], "data": data}
            for name, kind, data in (*tensors, *more)
        ]
        answer = triton.server.post("/v2/models/still/infer", {"id": "one", "inputs": inputs})
        return {out["name"]: out["data"] for out in answer.json().get("outputs", [])}

    whole = infer()["num_output_tokens"][0]
    with ThreadPoolExecutor() as pool:
        first = pool.submit(infer)
        until(lambda: _active(triton, "still") == "1", 2)
        infer(("stop", "BOOL", [True]))
        assert first.result(timeout=5)["num_output_tokens"][0] < whole
    triton.server.post("/v2/repository/models/still/unload", {})


@pytest.mark.triton
def test_it_takes_half_of_what_the_engine_leaves(triton: Triton, gpus: Gpus) -> None:
    assert triton.server.get("/v2/models/ensemble/ready").status_code == 200
    _, second = gpus.used_mib()
    assert second == pytest.approx(3328 + (22_565 - 3328) / 2, abs=20)


@pytest.mark.triton
def test_without_an_engine_the_load_fails(triton: Triton, filled: dict[str, str]) -> None:
    """A template's parameter that nobody filled in counts as unset."""
    open_ones = {name: value for name, value in filled.items() if name != "engine_dir"}
    triton.entry("inflight_batcher_llm/tensorrt_llm", "none", **open_ones)
    answer = triton.load("none")
    assert answer.status_code == 400
    assert "gpt_model_path parameter is not specified" in answer.json()["error"]


@pytest.mark.triton
def test_the_openai_frontend_serves_the_ensemble(
    triton: Triton, gpus: Gpus, tmp_path: Path
) -> None:
    port = free_port()
    words = [f"--model-repository={triton.repository}", "--model-control-mode=explicit"]
    words += ["--load-model=ensemble", "--backend=tensorrtllm", "--host=127.0.0.1"]
    words += [f"--openai-port={port}", f"--tokenizer={gpus.weights / 'tiny'}"]
    path = str(triton.repository.parent / "bin") + ":/usr/bin:/bin"
    with served("sandbox.openai_frontend.main", words, gpus, tmp_path, port, PATH=path) as server:
        wait_until_heard(server)
        names = {row["id"] for row in server.get("/v1/models").json()["data"]}
        assert names == set(PARTS)
        body: dict[str, Any] = {"model": "ensemble", "max_tokens": 4, "stop": ["!"]}
        body["messages"] = [{"role": "user", "content": "a berth"}]
        answer = server.post("/v1/chat/completions", body).json()
        assert answer["choices"][0]["message"]["content"].startswith("prebuilt here")
        assert answer["usage"]["completion_tokens"] == 4
        events = server.events("/v1/chat/completions", {**body, "stream": True})
        assert len(events) == 6
