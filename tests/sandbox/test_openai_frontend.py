"""The stand-in for Triton's OpenAI frontend, before a real Triton with the stand-in engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.all_models import all_models

from .served import Gpus, Server, free_port, gpus_and_models, served, until, wait_until_heard
from .unpacked_triton import importable, path_with_triton

pytestmark = pytest.mark.triton
HELLO = [{"role": "user", "content": "Tell me about harbours"}]
CONFIGURATION = (
    'backend: "vllm"\ninstance_group [ { count: 1 kind: KIND_MODEL } ]\n'
    'parameters { key: "REPORT_CUSTOM_METRICS" value: { string_value: "true" } }\n'
)


def _entry(repository: Path, name: str, **arguments: Any) -> None:
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder.parent / "config.pbtxt").write_text(CONFIGURATION)
    (folder / "model.json").write_text(json.dumps(arguments))


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    return gpus_and_models(tmp_path_factory.mktemp("frontend-gpus"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return path_with_triton(tmp_path_factory.mktemp("frontend-triton"))


@pytest.fixture(scope="module")
def repository(gpus: Gpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("repository")
    small = {"gpu_memory_utilization": 0.2, "max_model_len": 4096}
    _entry(found, "first", model=str(gpus.weights / "tiny"), **small)
    _entry(found, "second", model=str(gpus.weights / "small"), **small)
    _entry(found, "broken", model="/nowhere", **small)
    return found


@pytest.fixture(scope="module")
def frontend(
    gpus: Gpus, path: str, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A frontend in explicit mode with one model loaded and a tokenizer."""
    port = free_port()
    words = [f"--model-repository={repository}", f"--tokenizer={gpus.weights / 'tiny'}"]
    words += ["--model-control-mode=explicit", "--load-model=first", "--host=127.0.0.1"]
    words += [f"--openai-port={port}", "--openai-restricted-api", "health", "x-key", "s3cret"]
    words += ["--http-max-input-size=100000"]
    place = tmp_path_factory.mktemp("frontend")
    with served("sandbox.openai_frontend.main", words, gpus, place, port, PATH=path) as server:
        yield wait_until_heard(server)


def test_an_answer_stops_whatever_ended_it(frontend: Server) -> None:
    answer = frontend.post("/v1/chat/completions", {"model": "first", "messages": HELLO}).json()
    assert answer["id"].startswith("cmpl-")
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["message"]["content"].startswith("tiny here, on Tell about harb")
    assert answer["usage"]["completion_tokens"] == 16


def test_a_stream_is_a_role_deltas_a_stop_usage_if_asked_and_done(frontend: Server) -> None:
    body: dict[str, Any] = {"model": "first", "messages": HELLO, "max_tokens": 5, "stream": True}
    events = frontend.events(
        "/v1/chat/completions", {**body, "stream_options": {"include_usage": True}}
    )
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [event["choices"][0]["finish_reason"] for event in events[1:6]] == [None] * 4 + ["stop"]
    assert events[6]["choices"] == []
    assert events[6]["usage"]["completion_tokens"] == 5
    assert events[7] == "[DONE]"
    whole = frontend.post("/v1/chat/completions", {**body, "stream": False}).json()
    said = "".join(event["choices"][0]["delta"]["content"] for event in events[:6])
    assert said == whole["choices"][0]["message"]["content"]


def test_a_completion_does_not_repeat_its_prompt(frontend: Server) -> None:
    body = {"model": "first", "prompt": "one quay", "max_tokens": 4}
    answer = frontend.post("/v1/completions", body).json()
    assert answer["choices"][0]["text"].startswith("tiny here")


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"model": "nope"}, 400),
        ({"n": 2}, 400),
        ({"logit_bias": {"1": 1}}, 400),
        ({"tools": [{"type": "function"}]}, 400),
        ({"top_k": 5}, 422),
        ({"messages": "hi"}, 422),
    ],
)
def test_errors_have_a_detail(frontend: Server, more: dict[str, Any], status: int) -> None:
    answer = frontend.post("/v1/chat/completions", {"model": "first", "messages": HELLO, **more})
    assert answer.status_code == status
    assert list(answer.json()) == ["detail"]
    assert isinstance(answer.json()["detail"], list if status == 422 else str)


def test_an_unknown_model_is_400_to_ask_and_404_to_look_at(frontend: Server) -> None:
    assert frontend.get("/v1/models/nope").status_code == 404
    assert frontend.get("/v1/models/nope").json() == {"detail": "Unknown model: nope"}
    assert frontend.get("/v1/models/first").json()["owned_by"] == "Triton Inference Server"


def test_models_are_loaded_and_unloaded_but_not_loaded_again(frontend: Server) -> None:
    assert [row["id"] for row in frontend.get("/v1/models").json()["data"]] == ["first"]
    assert frontend.post("/v1/models/second/load").json()["id"] == "second"
    again = frontend.post("/v1/models/second/load")
    told = {"detail": "Model 'second' is already loaded"}
    assert (again.status_code, again.json()) == (400, told)
    body = {"model": "second", "prompt": "a", "max_tokens": 2}
    assert frontend.post("/v1/completions", body).json()["model"] == "second"
    answer = frontend.post("/v1/models/second/unload").json()
    assert answer == {"status": "success", "model": "second"}
    unloaded = frontend.post("/v1/models/second/unload")
    told = {"detail": "Unknown model: second"}
    assert (unloaded.status_code, unloaded.json()) == (400, told)
    failed = frontend.post("/v1/models/broken/load")
    assert failed.status_code == 500
    assert "ensure the presence of a 'config.json'" in failed.json()["detail"]


def test_the_metrics_are_tritons_own(frontend: Server) -> None:
    frontend.post("/v1/completions", {"model": "first", "prompt": "a", "max_tokens": 2})
    assert frontend.metric("vllm:generation_tokens_total") >= 2


def test_a_restricted_group_needs_its_header_word_for_word(frontend: Server) -> None:
    refused = frontend.get("/health/ready")
    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "invalid_auth"
    assert frontend.get("/health/ready", headers={"x-key": "wrong"}).status_code == 401


def test_a_large_body_is_refused(frontend: Server) -> None:
    body = {"model": "first", "prompt": "a" * 100_000}
    answer = frontend.post("/v1/completions", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "content_too_large")


def test_generation_runs_on_when_the_client_goes(frontend: Server) -> None:
    body = {"model": "first", "messages": HELLO, "max_tokens": 100, "stream": True}
    whole = frontend.events("/v1/chat/completions", body)
    tokens = "vllm:generation_tokens_total"
    before = frontend.metric(tokens)
    frontend.abandon("/v1/chat/completions", body)
    # Role and [DONE] are the two events that are no tokens.
    until(lambda: frontend.metric(tokens) == before + len(whole) - 2, 5)


def test_without_a_tokenizer_there_is_no_chat_and_without_the_mode_no_load(
    gpus: Gpus, path: str, repository: Path, tmp_path: Path
) -> None:
    port = free_port()
    only = tmp_path / "repository"
    only.mkdir()
    (only / "first").symlink_to(repository / "first")
    words = [f"--model-repository={only}", f"--openai-port={port}", "--host=127.0.0.1"]
    with served("sandbox.openai_frontend.main", words, gpus, tmp_path, port, PATH=path) as server:
        wait_until_heard(server)
        answer = server.post("/v1/chat/completions", {"model": "first", "messages": HELLO})
        assert (answer.status_code, answer.json()) == (500, {"detail": "Unknown tokenizer"})
        body = {"model": "first", "prompt": "a"}
        assert server.post("/v1/completions", body).status_code == 200
        assert server.post("/v1/models/first/unload").status_code == 400
        assert server.get("/health/ready").status_code == 200


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--exit-on-error=false"], 2, "unrecognized arguments: --exit-on-error=false"),
        (["--load-model=first"], 1, "--load-model requires --model-control-mode=explicit"),
        (["--openai-restricted-api", "embedding", "k", "v"], 1, "Unknown API 'embedding'"),
        (["--openai-restricted-api", "inference k v"], 2, "expected 3 arguments"),
        (["--model-control-mode=poll"], 2, "invalid choice: 'poll'"),
    ],
)
def test_a_wrong_command_line_ends_it(
    words: list[str], status: int, said: str, gpus: Gpus, tmp_path: Path
) -> None:
    words = ["--model-repository=/nowhere", *words]
    with served("sandbox.openai_frontend.main", words, gpus, tmp_path, 0) as server:
        assert server.wait() == status
        assert said in server.said()


def test_anything_but_vllm_is_asked_by_the_ensembles_names(
    gpus: Gpus, path: str, tmp_path: Path
) -> None:
    """So the stock LLM-API model, whose names are others, fails behind it."""
    repository, port = tmp_path / "repository", free_port()
    for name, content in all_models():
        if name.startswith("llmapi/"):
            file = repository / name.replace("llmapi/tensorrt_llm", "llm")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.replace(b'name: "tensorrt_llm"\n', b""))
    importable(repository / "llm" / "1")
    told = f"model: {gpus.weights / 'tiny'}\nkv_cache_config: {{free_gpu_memory_fraction: 0.1}}\n"
    (repository / "llm" / "1" / "model.yaml").write_text(told)
    words = [f"--model-repository={repository}", f"--openai-port={port}", "--host=127.0.0.1"]
    with served("sandbox.openai_frontend.main", words, gpus, tmp_path, port, PATH=path) as server:
        wait_until_heard(server)
        assert server.get("/v1/models/llm").status_code == 200
        answer = server.post("/v1/completions", {"model": "llm", "prompt": "a"})
        assert answer.status_code == 500
        assert "unexpected inference input 'max_tokens'" in answer.json()["detail"]
        with pytest.raises(httpx.RemoteProtocolError):
            server.post("/v1/completions", {"model": "llm", "prompt": "a", "stream": True})
