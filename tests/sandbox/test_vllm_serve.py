"""The stand-in for `vllm serve` looks like the observed 0.32.0, traps included."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from .served import Gpus, Server, free_port, gpus_and_models, served, until, wait_until_heard

HELLO = [{"role": "user", "content": "Tell me about harbours"}]
LONG: dict[str, Any] = {"messages": HELLO, "max_tokens": 4000, "ignore_eos": True, "stream": True}
RUNNING = "vllm:num_requests_running"
Starting = Callable[..., AbstractContextManager[Server]]


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    return gpus_and_models(tmp_path_factory.mktemp("vllm-gpus"))


@pytest.fixture(scope="module")
def starting(gpus: Gpus, tmp_path_factory: pytest.TempPathFactory) -> Starting:
    """`vllm serve MODEL …` on a port of its own, not yet waited for."""
    place = tmp_path_factory.mktemp("vllm")

    def start(model: str, *words: str, **environment: str) -> AbstractContextManager[Server]:
        port = free_port()
        line = ["serve", str(gpus.weights / model), "--host=127.0.0.1", f"--port={port}"]
        return served("sandbox.vllm_serve", [*line, *words], gpus, place, port, **environment)

    return start


@pytest.fixture(scope="module")
def vllm(starting: Starting) -> Iterator[Server]:
    """One server for the tests that leave it running."""
    names = ["--served-model-name", "architect", "worker"]
    words = [*names, "--max-model-len=4096", "--gpu-memory-utilization=0.3"]
    with starting("tiny", *words) as server:
        yield wait_until_heard(server)


def test_the_answer_carries_the_first_served_name_whichever_was_asked_for(vllm: Server) -> None:
    asked = {"model": "worker", "messages": HELLO, "max_tokens": 12}
    answer = vllm.post("/v1/chat/completions", asked).json()
    assert answer["model"] == "architect"
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["content"].startswith("tiny here, on Tell about harb")
    assert answer["usage"]["completion_tokens"] == 12
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + 12


def test_a_stream_is_a_role_a_chunk_a_token_a_reason_usage_and_done(vllm: Server) -> None:
    body = {"model": "architect", "messages": HELLO, "max_tokens": 5, "stream": True}
    events = vllm.events("/v1/chat/completions", {**body, "stream_options": {"include_usage": 1}})
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [len(event["choices"]) for event in events[1:6]] == [1] * 5
    assert [e["choices"][0]["finish_reason"] for e in events[:6]] == [None] * 5 + ["length"]
    assert events[6]["choices"] == []
    assert events[6]["usage"]["completion_tokens"] == 5
    assert events[7:] == ["[DONE]"]
    assert {event["id"] for event in events[:7]} == {events[0]["id"]}
    whole = vllm.post("/v1/chat/completions", {**body, "stream": False}).json()
    said = "".join(event["choices"][0]["delta"]["content"] for event in events[:6])
    assert said == whole["choices"][0]["message"]["content"]


def test_without_being_asked_a_stream_tells_no_usage(vllm: Server) -> None:
    body = {"messages": HELLO, "max_tokens": 2, "stream": True}
    events = vllm.events("/v1/chat/completions", body)
    assert all("usage" not in event for event in events[:-1])


def test_a_stop_string_is_never_shown_even_in_part(vllm: Server) -> None:
    body = {"messages": HELLO, "stop": ["harbours:"], "stream": True}
    events = vllm.events("/v1/chat/completions", body)
    said = "".join(event["choices"][0]["delta"]["content"] for event in events[:-1])
    assert said == "tiny here, on Tell about "
    assert events[-2]["choices"][0]["finish_reason"] == "stop"


def test_a_completion_has_sixteen_tokens_unless_asked_and_one_choice_a_prompt(
    vllm: Server,
) -> None:
    answer = vllm.post("/v1/completions", {"prompt": ["one quay", "two quays"], "n": 2}).json()
    assert answer["object"] == "text_completion"
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert answer["usage"]["completion_tokens"] == 64


def test_an_unknown_model_is_not_found_and_the_names_are_told(vllm: Server) -> None:
    answer = vllm.post("/v1/completions", {"model": "nope", "prompt": "a"})
    assert answer.status_code == 404
    message = "The model `nope` does not exist. Valid aliases: architect, worker"
    wanted = {"message": message, "type": "NotFoundError", "param": "model", "code": 404}
    assert answer.json() == {"error": wanted}


@pytest.mark.parametrize(
    "body", [{"max_tokens": 5000}, {"max_tokens": 4095}, {"messages": [HELLO[0]] * 900}]
)
def test_too_many_tokens_are_refused_with_the_models_length(
    vllm: Server, body: dict[str, Any]
) -> None:
    answer = vllm.post("/v1/chat/completions", {"messages": HELLO, **body})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "BadRequestError"
    assert "max_model_len=" in answer.json()["error"]["message"]
    assert "4096" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "content", [b'{"messages": [', b"[]", b'{"messages": "hi"}', b'{"messages": [], "n": "two"}']
)
def test_a_broken_body_is_a_bad_request(vllm: Server, content: bytes) -> None:
    with vllm.http() as client:
        answer = client.post("/v1/chat/completions", content=content)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == 400


def test_models_are_listed_with_their_directory_and_length(vllm: Server) -> None:
    rows = vllm.get("/v1/models").json()["data"]
    assert [row["id"] for row in rows] == ["architect", "worker"]
    assert rows[0]["root"].endswith("/tiny")
    assert rows[0]["max_model_len"] == 4096
    assert rows[0]["owned_by"] == "vllm"


def test_metrics_carry_the_first_name_and_count(vllm: Server) -> None:
    before = vllm.metric("vllm:generation_tokens_total")
    vllm.post("/v1/completions", {"model": "worker", "prompt": "a", "max_tokens": 7})
    assert vllm.metric("vllm:generation_tokens_total") == before + 7
    text = vllm.get("/metrics").text
    assert 'vllm:num_requests_running{engine="0",model_name="architect"}' in text
    assert 'finished_reason="length"' in text
    for name in (
        *("vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:engine_sleep_state"),
        *("vllm:prompt_tokens_total", "vllm:request_success_total", "vllm:num_preemptions_total"),
        *("vllm:time_to_first_token_seconds_count", "vllm:inter_token_latency_seconds_count"),
        *("vllm:e2e_request_latency_seconds_count", "vllm:request_queue_time_seconds_count"),
    ):
        vllm.metric(name)


@pytest.mark.parametrize("stream", [True, False])
def test_generation_stops_when_the_client_goes(vllm: Server, stream: bool) -> None:
    until(lambda: vllm.metric(RUNNING) == 0)
    before = vllm.metric("vllm:generation_tokens_total")
    running = partial(until, lambda: vllm.metric(RUNNING) == 1, 2)
    vllm.abandon("/v1/chat/completions", {**LONG, "stream": stream}, running)
    until(lambda: vllm.metric(RUNNING) == 0, 2)
    assert before < vllm.metric("vllm:generation_tokens_total") < before + 300


def test_unknown_paths_are_told_as_fastapi_does(vllm: Server) -> None:
    assert vllm.get("/nothing").json() == {"detail": "Not Found"}


def test_the_key_guards_v1_only(starting: Starting) -> None:
    with starting("tiny", "--gpu-memory-utilization=0.2", VLLM_API_KEY="s3cret") as server:
        wait_until_heard(server)
        refused = server.get("/v1/models")
        assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
        for path in ("/health", "/version", "/metrics", "/ping"):
            assert server.get(path).status_code == 200
        assert server.get("/version").json() == {"version": "0.32.0"}
        server.headers["authorization"] = "Bearer wrong"
        assert server.get("/v1/models").status_code == 401
        server.headers["authorization"] = "Bearer s3cret"
        assert server.get("/v1/models").status_code == 200


def test_nobody_listens_until_the_model_is_loaded(starting: Starting, gpus: Gpus) -> None:
    slow = {"VLLM_LOAD_SECONDS_PER_GIB": "2"}
    with starting("small", "--gpu-memory-utilization=0.3", **slow) as server:
        until(lambda: any(gpus.used_mib()) and "API server version" in server.said())
        assert not server.hears()
        wait_until_heard(server)
        assert server.get("/health").status_code == 200


def test_several_gpus_need_no_ray_and_ray_is_not_there(starting: Starting, gpus: Gpus) -> None:
    words = ["--tensor-parallel-size", "2", "--gpu-memory-utilization=0.3"]
    with starting("small", *words) as server:
        wait_until_heard(server)
        names = {
            holder.process_name for holder in gpus.holders() if "Worker" in holder.process_name
        }
        assert names == {"VLLM::Worker_TP0", "VLLM::Worker_TP1"}
    with starting("small", *words, "--distributed-executor-backend=ray") as server:
        assert server.wait() == 1
        assert "Ray is not installed" in server.said()


def test_memory_goes_when_the_server_ends(starting: Starting, gpus: Gpus) -> None:
    before = gpus.used_mib()
    with starting("tiny", "--gpu-memory-utilization=0.2") as server:
        wait_until_heard(server)
        assert gpus.used_mib() != before
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
    assert gpus.used_mib() == before


def test_what_does_not_fit_ends_it_with_cudas_words(starting: Starting) -> None:
    with starting("large", CUDA_VISIBLE_DEVICES="1", VLLM_LOAD_SECONDS_PER_GIB="0") as server:
        assert server.wait() == 1
        assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in server.said()
        assert "Engine core initialization failed. See root cause above." in server.said()


def test_a_dead_engine_ends_the_stream_with_an_error_and_then_the_server(
    starting: Starting, gpus: Gpus
) -> None:
    others = {holder.pid for holder in gpus.holders()}
    with starting("tiny", "--gpu-memory-utilization=0.2") as server:
        wait_until_heard(server)
        engine = next(holder.pid for holder in gpus.holders() if holder.pid not in others)
        with server.http() as client, client.stream("POST", "/v1/chat/completions", json=LONG) as a:
            lines = (line for line in a.iter_lines() if line)
            next(lines)
            os.kill(engine, signal.SIGKILL)
            *_, error, done = lines
        assert '"type":"InternalServerError"' in error
        assert "EngineCore encountered an issue" in error
        assert done == "data: [DONE]"
        assert server.get("/health").status_code == 503
        refused = server.post("/v1/completions", {"prompt": "a"})
        assert refused.status_code == 500
        assert "EngineCore encountered an issue" in refused.json()["error"]["message"]
        assert server.wait() == 0


def test_a_taken_port_is_told_before_anything_is_loaded(vllm: Server, starting: Starting) -> None:
    with starting("small", f"--port={vllm.port}") as server:
        assert server.wait() == 1
        assert "Address already in use" in server.said()


def test_the_weights_directory_is_not_written_to(vllm: Server, gpus: Gpus) -> None:
    assert vllm.get("/health").status_code == 200
    names = {path.name for path in Path(gpus.weights / "tiny").iterdir()}
    assert not any("cache" in name for name in names)
