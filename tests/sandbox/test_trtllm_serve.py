"""The stand-in for trtllm-serve has the real one's shapes and its traps."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from .served import Gpus, Server, free_port, gpus_and_models, served, until, wait_until_heard

HELLO = [{"role": "user", "content": "Tell me about harbours"}]
LONG: dict[str, Any] = {
    "model": "any",
    "messages": HELLO,
    "max_tokens": 4000,
    "ignore_eos": True,
    "stream": True,
}
YAML = "return_perf_metrics: true\nenable_iter_perf_stats: true\n"
RUNNING = ("trtllm_num_requests_running", "/prometheus/metrics")
Starting = Callable[..., AbstractContextManager[Server]]


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    return gpus_and_models(tmp_path_factory.mktemp("trtllm-gpus"))


@pytest.fixture(scope="module")
def starting(gpus: Gpus, tmp_path_factory: pytest.TempPathFactory) -> Starting:
    """`trtllm-serve MODEL …` on a port of its own, not yet waited for."""
    place = tmp_path_factory.mktemp("trtllm")

    def start(
        model: str, *words: str, yaml: str = "", **environment: str
    ) -> AbstractContextManager[Server]:
        port = free_port()
        line = [str(gpus.weights / model), "--host=127.0.0.1", f"--port={port}"]
        if yaml:
            file = place / f"{port}.yaml"
            file.write_text(yaml)
            line.append(f"--extra_llm_api_options={file}")
        return served("sandbox.trtllm_serve", [*line, *words], gpus, place, port, **environment)

    return start


@pytest.fixture(scope="module")
def trtllm(starting: Starting) -> Iterator[Server]:
    """One server for the tests that leave it running, on GPU 0."""
    with starting("tiny", "--max_seq_len=4096", yaml=YAML, CUDA_VISIBLE_DEVICES="0") as server:
        yield wait_until_heard(server)


def test_any_model_name_is_taken_and_said_back(trtllm: Server) -> None:
    asked = {"model": "nobody/knows", "messages": HELLO, "max_tokens": 9}
    answer = trtllm.post("/v1/chat/completions", asked).json()
    assert answer["model"] == "nobody/knows"
    assert answer["choices"][0]["message"]["content"].startswith("tiny here, on Tell about harb")
    assert answer["usage"]["completion_tokens"] == 9


def test_the_first_chunk_ends_with_a_space_and_nulls_are_left_out(trtllm: Server) -> None:
    body = {"model": "m", "messages": HELLO, "max_tokens": 3, "stream": True}
    text = trtllm.post("/v1/chat/completions", body).text
    first, second, *_ = text.split("\n\n")
    assert first.endswith('"delta":{"role":"assistant","content":""}}]} ')
    assert not second.endswith(" ")
    assert "null" not in text
    assert text.endswith("data: [DONE]\n\n")


def test_usage_comes_once_stream_options_are_given_whatever_they_say(trtllm: Server) -> None:
    body: dict[str, Any] = {"model": "m", "messages": HELLO, "max_tokens": 3, "stream": True}
    *_, last, done = trtllm.events("/v1/chat/completions", body)
    assert "usage" not in last
    *_, last, done = trtllm.events("/v1/chat/completions", {**body, "stream_options": {}})
    assert (last["choices"], last["usage"]["completion_tokens"], done) == ([], 3, "[DONE]")


def test_a_completion_runs_to_its_end_unless_it_is_told(trtllm: Server) -> None:
    answer = trtllm.post("/v1/completions", {"model": "m", "prompt": "one quay"}).json()
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] >= 30
    events = trtllm.events(
        "/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 2, "stream": True}
    )
    assert [event["choices"][0]["finish_reason"] for event in events[:-1]] == [None, "length"]


def test_errors_are_flat(trtllm: Server) -> None:
    body = {"model": "m", "messages": HELLO, "max_tokens": 5000}
    answer = trtllm.post("/v1/chat/completions", body)
    told = answer.json()
    assert answer.status_code == 400
    assert "max_seq_len (4096)" in told.pop("message")
    assert told == {"object": "error", "type": "BadRequestError", "param": None, "code": 400}


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"guided_json": {}}, "extra_forbidden"),
        ({"stream_options": {}}, "stream_options"),
        ({"messages": None}, "Field required"),
        ({"n": "two"}, "int_type"),
    ],
)
def test_a_schema_error_is_a_string(trtllm: Server, more: dict[str, Any], word: str) -> None:
    answer = trtllm.post("/v1/chat/completions", {"model": "m", "messages": HELLO, **more})
    assert answer.status_code == 400
    assert word in answer.json()["error"]


def test_only_the_last_part_of_the_directory_is_told(trtllm: Server) -> None:
    row = trtllm.get("/v1/models").json()["data"][0]
    assert (row["id"], row["owned_by"]) == ("tiny", "tensorrt_llm")


def test_it_says_its_version_and_how_it_is(trtllm: Server) -> None:
    assert trtllm.get("/version").json() == {"version": "1.2.1"}
    assert (trtllm.get("/health").status_code, trtllm.get("/health").text) == (200, "")
    assert trtllm.get("/health_generate").text == "Generation health check OK"
    assert trtllm.get("/v1/nothing").json() == {"detail": "Not Found"}


def test_reading_the_iterations_drains_them(trtllm: Server) -> None:
    trtllm.get("/metrics")
    trtllm.post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 4})
    rows = trtllm.get("/metrics").json()
    assert len(rows) == 4
    assert rows[0]["numActiveRequests"] == 1
    assert rows[0]["kvCacheStats"]["usedNumBlocks"] == 1
    assert trtllm.get("/metrics").json() == []


def test_prometheus_counts_tokens(trtllm: Server) -> None:
    name, path = "trtllm_generation_tokens_total", "/prometheus/metrics"
    trtllm.post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 1})
    before = trtllm.metric(name, path)
    trtllm.post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 4})
    assert trtllm.metric(name, path) == before + 4


@pytest.mark.parametrize("stream", [True, False])
def test_generation_goes_on_for_up_to_a_second_after_the_client(
    trtllm: Server, stream: bool
) -> None:
    trtllm.abandon("/v1/chat/completions", {**LONG, "stream": stream})
    gone = time.monotonic()
    until(lambda: trtllm.metric(*RUNNING) == 1, 0.3)
    until(lambda: trtllm.metric(*RUNNING) == 0, 3)
    assert time.monotonic() - gone < 2.5


def test_without_the_yaml_there_is_no_prometheus_and_no_iteration(
    starting: Starting, gpus: Gpus
) -> None:
    before = gpus.used_mib()[1]
    options = ["--kv_cache_free_gpu_memory_fraction=0.5"]
    with starting("tiny", *options, CUDA_VISIBLE_DEVICES="1") as server:
        wait_until_heard(server)
        # Half of what the weights and 1.25 GiB leave of 22565 MiB, where vLLM takes half of all.
        assert 11900 < gpus.used_mib()[1] - before < 12100
        assert server.get("/prometheus/metrics").status_code == 404
        server.post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 1})
        assert server.get("/metrics").json() == []


def test_an_unknown_option_is_clicks_usage_error(starting: Starting) -> None:
    with starting("tiny", "--gpu-memory-utilization=0.9") as server:
        assert server.wait() == 2
        assert "Error: No such option '--gpu-memory-utilization'" in server.said()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port=8000", "model"], "No such option '--port'"),
        (["model", "--tp_size=two"], "'two' is not a valid integer"),
        (["model", "--backend=vllm"], "'vllm' is not one of 'pytorch'"),
        (["model", "--config=/nowhere.yaml"], "/nowhere.yaml"),
    ],
)
def test_a_wrong_command_line_ends_with_status_2(
    words: list[str], said: str, gpus: Gpus, tmp_path: Path
) -> None:
    with served("sandbox.trtllm_serve", words, gpus, tmp_path, 0) as server:
        assert server.wait() == 2
        assert said in server.said()


def test_what_does_not_fit_ends_it_with_cudas_words(starting: Starting) -> None:
    with starting("large", CUDA_VISIBLE_DEVICES="1", VLLM_LOAD_SECONDS_PER_GIB="0") as server:
        assert server.wait() == 1
        assert "CUDA out of memory. Tried to allocate" in server.said()
        assert "Executor worker returned error" in server.said()


def test_without_a_gpu_it_says_so(starting: Starting) -> None:
    with starting("tiny", CUDA_VISIBLE_DEVICES="") as server:
        assert server.wait() == 1
        assert "No GPU devices found on the node" in server.said()


def test_a_dead_engine_cuts_the_stream_without_a_word_and_ends_the_server(
    starting: Starting, gpus: Gpus
) -> None:
    others = {holder.pid for holder in gpus.holders()}
    with starting("tiny", CUDA_VISIBLE_DEVICES="1") as server:
        wait_until_heard(server)
        engine = next(holder.pid for holder in gpus.holders() if holder.pid not in others)
        with server.http() as client, client.stream("POST", "/v1/chat/completions", json=LONG) as a:
            lines = a.iter_lines()
            said = next(lines)
            os.kill(engine, signal.SIGKILL)
            with pytest.raises(httpx.RemoteProtocolError):
                said += "".join(lines)
        assert "error" not in said
        assert "[DONE]" not in said
        assert server.wait() == 0


def test_a_probe_of_a_dead_engine_ends_the_server(starting: Starting, gpus: Gpus) -> None:
    others = {holder.pid for holder in gpus.holders()}
    with starting("tiny", CUDA_VISIBLE_DEVICES="1") as server:
        wait_until_heard(server)
        os.kill(
            next(holder.pid for holder in gpus.holders() if holder.pid not in others),
            signal.SIGKILL,
        )
        answer = until(lambda: (a := server.get("/health")).status_code == 503 and a, 5)
        assert "LLM is unavailable" in answer.text
        assert server.wait() == 0
