"""Streams that clients cut, through everything there is: gateway, adapter, a real tritonserver."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.gateway.running import DEMO, weights, write
from tests.gateway.test_process import started as adapter_started
from tests.gateway_nginx.conftest import DESK, client
from tests.gateway_nginx.declared import demo, endpoint, gateway, role
from tests.gateway_nginx.running import RunningGateway, until
from tests.gateway_nginx.test_streams import body, connections, cut_streams
from tests.providers.local_sshd import free_port
from tests.sandbox.served import gpus_and_models
from tests.sandbox.triton_serving import Triton, triton_serving

pytestmark = pytest.mark.triton
STREAMS = 1000
MOST_S = 60
ROLE = "architect"
CONFIG = """
backend: "vllm"
instance_group [ { count: 1 kind: KIND_MODEL } ]
parameters { key: "REPORT_CUSTOM_METRICS" value { string_value: "true" } }
"""


@dataclass
class Chain:
    """A role's gateway, adapter and engine."""

    gateway: RunningGateway
    adapter: str
    adapter_pid: int
    triton: Triton

    def running(self) -> float:
        """Requests that the adapter has under way."""
        text = httpx.get(f"{self.adapter}/metrics", trust_env=False).text
        return sum(map(float, re.findall(r"^berth_adapter_requests_running\S* (\S+)", text, re.M)))

    def generated(self) -> float:
        """Tokens that the engine has made, by its own metrics."""
        found = re.findall(r"^vllm:generation_tokens_total\S* (\S+)", self.triton.metrics(), re.M)
        assert found, self.triton.metrics()
        return sum(map(float, found))

    def open_files(self) -> int:
        """Of the adapter."""
        return len(list(Path(f"/proc/{self.adapter_pid}/fd").iterdir()))

    def answers(self) -> bool:
        """One short answer."""
        with client(self.gateway, DESK) as open_client:
            asked = body("hi", max_tokens=2) | {"stream": False}
            return open_client.post("/v1/completions", json=asked).status_code == 200


def entry(triton: Triton, weights_of: Path) -> None:
    """A model of the vLLM backend that reports its metrics."""
    folder = triton.repository / ROLE / "1"
    folder.mkdir(parents=True)
    (folder.parent / "config.pbtxt").write_text(CONFIG)
    about = {"model": str(weights_of), "gpu_memory_utilization": 0.2, "max_model_len": 4096}
    (folder / "model.json").write_text(json.dumps(about))
    answer = triton.load(ROLE)
    assert answer.status_code == 200, (answer.text, triton.server.said())


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    gpus = gpus_and_models(tmp_path / "gpus")
    with triton_serving(tmp_path / "triton", gpus) as triton:
        entry(triton, gpus.weights / "tiny")
        with in_front_of(triton, tmp_path) as found:
            yield found


@contextmanager
def in_front_of(triton: Triton, place: Path) -> Iterator[Chain]:
    port = free_port()
    about = {"engine": "triton-vllm", "base_url": triton.server.url, "model": ROLE}
    about |= {"weights": str(weights(place / "w")), "metrics_url": f"{triton.server.url}/metrics"}
    write(place / "adapter", {ROLE: about}, listen=f"127.0.0.1:{port}")
    at = f"127.0.0.1:{port}"
    with adapter_started(place / "adapter") as process:
        until(lambda: connects(at), "the adapter answers", 20)
        served = role(at, openai=endpoint(at, model=f"{DEMO}/{ROLE}"), framing=None, kserve=None)
        running = RunningGateway(
            gateway(connections_per_key=10_000), demo("desk", DESK, {ROLE: served})
        )
        try:
            yield Chain(running, f"http://{at}", process.pid, triton)
        finally:
            running.stop()


def connects(at: str) -> bool:
    """Whether the adapter says that it is well."""
    try:
        return httpx.get(f"http://{at}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_a_thousand_cut_streams_leave_no_generation_and_no_connection(chain: Chain) -> None:
    adapter, triton = int(chain.adapter.rpartition(":")[2]), chain.triton.server.port

    def nothing_is_open() -> bool:
        return not connections(adapter) and not connections(triton)

    until(chain.answers, "the first answer", 20)
    until(nothing_is_open, "what is idle was given up", 20)
    files = chain.open_files()
    began = time.monotonic()
    cut_streams(chain.gateway.port, STREAMS, within_s=0.8, max_tokens=3000)
    assert time.monotonic() - began < MOST_S

    # An answer of 3000 tokens takes a minute, so whatever ran on would be seen here.
    until(lambda: chain.running() == 0, "the adapter has nothing under way")
    made = chain.generated()
    until(chain.answers, "answers go on")
    assert chain.generated() == made + 2
    said = chain.triton.server.said()
    assert said.count("Cancelling the request") > STREAMS / 2
    assert said.count("Cancelling the request") == said.count("Successfully cancelled")

    status = chain.gateway.status()
    assert status["requests"] == {"desk/default": 0}
    replicas = status["demos"]["desk"][ROLE]["replicas"]
    assert [replica["requests"] for replica in replicas] == [0]
    assert not connections(chain.gateway.port)
    until(nothing_is_open, "no connection to the adapter or the engine is left", 20)
    assert chain.open_files() == files

    # The engine waits for the last of its requests before it lets a model go.
    chain.triton.server.post(f"/v2/repository/models/{ROLE}/unload", {})
    until(lambda: "Shutdown complete" in chain.triton.server.said(), "the model is unloaded")
    assert "Awaiting remaining" not in chain.triton.server.said()
