"""OpenAI's own client is content with both servers' answers, streams and errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from .served import Gpus, Server, free_port, gpus_and_models, served, wait_until_heard

LIMITS = {"vllm": ["--gpu-memory-utilization=0.3"], "trtllm": ["--free_gpu_memory_fraction=0.3"]}


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    return gpus_and_models(tmp_path_factory.mktemp("client-gpus"), count=1)


@pytest.fixture(scope="module", params=["vllm", "trtllm"])
def server(
    request: pytest.FixtureRequest, gpus: Gpus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    kind, port, place = request.param, free_port(), tmp_path_factory.mktemp("client")
    words = ["serve", str(Path(gpus.weights, "tiny")), "--host=127.0.0.1", f"--port={port}"]
    words += ["--served-model-name" if kind == "vllm" else "--served_model_name", "architect"]
    words += LIMITS[kind]
    with served(f"sandbox.{kind}_serve", words, gpus, place, port) as found:
        yield wait_until_heard(found)


def test_it_chats_streams_completes_and_is_refused(server: Server) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["architect"]
        answer = client.chat.completions.create(
            model="architect", messages=[{"role": "user", "content": "a berth"}], max_tokens=8
        )
        said = answer.choices[0].message.content
        assert said
        assert said.startswith("tiny here")
        assert answer.usage
        assert answer.usage.completion_tokens == 8
        stream = client.chat.completions.create(
            model="architect",
            messages=[{"role": "user", "content": "a berth"}],
            max_tokens=8,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
        deltas = [c.choices[0].delta.content or "" for c in chunks if c.choices]
        assert "".join(deltas) == said
        assert chunks[-1].usage
        assert chunks[-1].usage.completion_tokens == 8
        completion = client.completions.create(model="architect", prompt="a berth", max_tokens=3)
        assert completion.choices[0].finish_reason == "length"
        with pytest.raises(openai.BadRequestError, match="8192"):
            client.completions.create(model="architect", prompt="a", max_tokens=9000)
