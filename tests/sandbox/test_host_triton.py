"""A real Triton on the host, with the stand-in engine behind it."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.triton_image import IMAGE

from .conftest import Host

pytestmark = pytest.mark.sandbox
CONFIGURATION = (
    'backend: "vllm"\ninstance_group [ { count: 1 kind: KIND } ]\n'
    'parameters { key: "REPORT_CUSTOM_METRICS" value: { string_value: "true" } }\n'
)


class Server:
    """A Triton pinned to two GPUs, reached through the host's loopback."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def entry(self, name: str, kind: str = "KIND_MODEL", **arguments: Any) -> None:
        arguments["model"] = f"/data/triton/weights/{arguments['model']}"
        folder = f"/data/triton/models/{name}"
        self._host.root(
            f"mkdir -p {folder}/1 && cat > {folder}/config.pbtxt <<'X'\n"
            f"{CONFIGURATION.replace('KIND }', kind + ' }')}X\n"
            f"cat > {folder}/1/model.json <<'X'\n{json.dumps(arguments)}\nX\n"
        )

    def post(self, path: str, body: object = None) -> str:
        data = json.dumps(body or {}).replace("'", "'\\''")
        return self._host.root(f"curl -sN -X POST localhost:8000/v2/{path} -d '{data}'")

    def load(self, name: str) -> str:
        return self.post(f"repository/models/{name}/load")

    def unload(self, name: str) -> None:
        self.post(f"repository/models/{name}/unload")
        deadline = time.monotonic() + 15
        while any(self._host.used_mib()) and time.monotonic() < deadline:
            time.sleep(0.1)

    def log(self) -> str:
        return self._host.root("docker logs test-triton 2>&1")


@pytest.fixture(scope="module")
def server(host: Host) -> Iterator[Server]:
    host.root(
        "mkdir -p /data/triton/models; docker rm -f test-triton 2>/dev/null; "
        "docker run -d --name test-triton --gpus "
        f"'\"device=2,3\"' -p 127.0.0.1:8000:8000 -p 127.0.0.1:8002:8002 "
        f"-v /data/triton:/data/triton:ro {IMAGE} tritonserver "
        "--model-repository=/data/triton/models --model-control-mode=explicit"
    )
    host.root(
        "for i in $(seq 100); do curl -sf localhost:8000/v2/health/live && exit; sleep .1; done; "
        "docker logs test-triton >&2; exit 1"
    )
    yield Server(host)
    host.root("docker rm -f test-triton")


def test_a_loaded_model_takes_its_share_and_gives_it_back(host: Host, server: Server) -> None:
    server.entry("small", model="small", gpu_memory_utilization=0.5, max_model_len=4096)
    assert server.load("small") == ""
    used = host.used_mib()
    assert used[2] == pytest.approx(0.5 * 22_565 + 512, abs=16)
    assert used[3] == 0
    answer = json.loads(server.post("models/small/generate", {"text_input": "a berth"}))
    assert answer["text_output"].startswith("a berthsmall here, on berth:")
    server.unload("small")
    assert host.used_mib() == [0, 0, 0, 0]


def test_kind_gpu_makes_an_engine_on_each_visible_gpu(host: Host, server: Server) -> None:
    server.entry("every", "KIND_GPU", model="small", gpu_memory_utilization=0.3)
    assert server.load("every") == ""
    used = host.used_mib()
    assert used[2] == used[3] > 6000
    server.unload("every")


def test_kind_gpu_fails_with_tensor_parallelism(server: Server) -> None:
    server.entry("split", "KIND_GPU", model="small", tensor_parallel_size=2)
    assert "please specify KIND_MODEL" in server.load("split")


def test_tensor_parallelism_needs_ray_in_explicit_mode(host: Host, server: Server) -> None:
    options: dict[str, Any] = {
        "model": "small",
        "tensor_parallel_size": 2,
        "gpu_memory_utilization": 0.3,
    }
    server.entry("mp", **options)
    assert "before the\\n        current process has finished" in server.load("mp")
    server.entry("ray", distributed_executor_backend="ray", **options)
    assert server.load("ray") == ""
    assert all(host.used_mib()[2:])
    server.unload("ray")


def test_a_model_too_large_leaves_cudas_words_in_the_log(host: Host, server: Server) -> None:
    server.entry("large", model="gemma-4-31b-it-nvfp4", max_model_len=4096)
    assert "Engine core initialization failed" in server.load("large")
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in server.log()
    assert host.used_mib() == [0, 0, 0, 0]


def test_a_stream_sends_deltas_and_stops_when_the_client_goes(host: Host, server: Server) -> None:
    server.entry("talk", model="tiny", gpu_memory_utilization=0.3)
    server.load("talk")
    wanted = json.dumps({"max_tokens": 3000, "ignore_eos": True})
    body = {"text_input": "hello", "stream": True, "sampling_parameters": wanted}
    host.root(
        "timeout 1 curl -sN -X POST localhost:8000/v2/models/talk/generate_stream "
        f"-d '{json.dumps(body)}'",
        check=False,
    )

    def generated() -> float:
        found = host.root("curl -s localhost:8002/metrics | grep ^vllm:generation_tokens_total")
        return float(found.split()[-1])

    time.sleep(1)
    after = generated()
    time.sleep(0.5)
    assert generated() == after < 300
    server.unload("talk")


def test_a_killed_engine_leaves_a_ready_model_that_cannot_answer(
    host: Host, server: Server
) -> None:
    server.entry("dies", model="tiny", gpu_memory_utilization=0.3)
    server.load("dies")
    host.root("kill -9 $(nvidia-smi --query-compute-apps=pid --format=csv,noheader)")
    assert host.used_mib() == [0, 0, 0, 0]
    ready = "curl -s -o /dev/null -w '%{http_code}' localhost:8000/v2/models/dies/ready"
    assert host.root(ready) == "200"
    assert "EngineCore encountered an issue" in server.post(
        "models/dies/generate", {"text_input": "hello"}
    )
    server.unload("dies")
