"""The engines' images on the host: started by the real command lines, pinned to simulated GPUs."""

import json
import time
from collections.abc import Iterator

import pytest

from sandbox.engine_images import TRTLLM, VLLM
from sandbox.triton_image import IMAGE

from .conftest import Host

pytestmark = pytest.mark.sandbox
WEIGHTS = "/data/triton/weights"
RUN = f"docker run -v {WEIGHTS}:{WEIGHTS}:ro"


def _start(host: Host, name: str, words: str) -> None:
    host.root(f"docker rm -f {name} 2>/dev/null; {RUN} -d --name {name} --read-only {words}")
    host.root(
        "for i in $(seq 150); do curl -sf localhost:8100/health && exit; sleep .1; done; "
        f"docker logs {name} >&2; exit 1"
    )


@pytest.fixture(scope="module")
def vllm(host: Host) -> Iterator[str]:
    """A container on GPUs 1 and 2, as its image starts it."""
    options = "--tensor-parallel-size 2 --gpu-memory-utilization 0.5 --served-model-name architect"
    gpus = "--gpus '\"device=1,2\"' -p 127.0.0.1:8100:8000"
    _start(host, "test-vllm", f"{gpus} {VLLM.name} {WEIGHTS}/small {options}")
    yield "test-vllm"
    host.root("docker rm -f test-vllm")


def _stops_cleanly(host: Host, name: str) -> None:
    """As its unit would stop it: by a signal, well before Docker's own patience ends."""
    before = time.monotonic()
    host.root(f"docker stop --time 9 {name}")
    assert time.monotonic() - before < 7
    assert host.root(f"docker inspect -f '{{{{.State.ExitCode}}}}' {name}").strip() == "0"
    assert host.used_mib() == [0, 0, 0, 0]


def _chat(host: Host, model: str) -> dict[str, object]:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "a berth"}]})
    answer = host.root(f"curl -s localhost:8100/v1/chat/completions -d '{body}'")
    found: dict[str, object] = json.loads(answer)
    return found


def test_vllm_serves_on_the_gpus_it_was_given(host: Host, vllm: str) -> None:
    assert _chat(host, "architect")["model"] == "architect"
    used = host.used_mib()
    assert used[0] == used[3] == 0
    assert used[1] == used[2] > 10_000
    assert "VLLM::Worker_TP0" in host.root(f"docker top {vllm}")


def test_a_killed_worker_ends_the_container_and_frees_all_memory(host: Host, vllm: str) -> None:
    host.root("kill -9 $(nvidia-smi --query-compute-apps=pid --format=csv,noheader | head -1)")
    assert "EngineCore encountered an issue" in str(_chat(host, "architect"))
    assert host.root(f"timeout 20 docker wait {vllm}").strip() == "0"
    assert host.used_mib() == [0, 0, 0, 0]


def test_an_unknown_flag_ends_vllm_with_status_2(host: Host) -> None:
    said = host.root(f"{RUN} --rm --gpus all {VLLM.name} {WEIGHTS}/tiny --nope 2>&1; echo $?")
    assert said.splitlines()[-1] == "2"
    assert "usage: vllm serve" in said
    assert "unrecognized arguments: --nope" in said


def test_without_gpus_vllm_says_so(host: Host) -> None:
    said = host.root(f"{RUN} --rm {VLLM.name} {WEIGHTS}/tiny 2>&1", check=False)
    assert "Failed to infer device type" in said


def test_the_versions_can_be_read_from_the_images(host: Host) -> None:
    ask = "python3 -c \"from importlib.metadata import version as v; print(v('{}'))\""
    run = "docker run --rm --entrypoint /bin/sh"
    for image, package, version in (
        (VLLM, "vllm", "0.32.0"),
        (VLLM, "transformers", "5.16.1"),
        (TRTLLM, "tensorrt_llm", "1.2.1"),
    ):
        words = ask.format(package).replace('"', '\\"').replace("'", "'\\''")
        assert host.root(f"{run} {image.name} -c '{words}'".replace('\\"', '"')).strip() == version


def test_trtllm_serves_and_takes_its_share_of_what_is_free(host: Host) -> None:
    words = f"trtllm-serve {WEIGHTS}/tiny --host 0.0.0.0 --kv_cache_free_gpu_memory_fraction 0.5"
    gpus = "--gpus '\"device=3\"' -p 127.0.0.1:8100:8000"
    _start(host, "test-trtllm", f"{gpus} {TRTLLM.name} {words}")
    try:
        assert _chat(host, "whoever")["model"] == "whoever"
        assert 11_000 < host.used_mib()[3] < 13_000
        _stops_cleanly(host, "test-trtllm")
    finally:
        host.root("docker rm -f test-trtllm")


def test_tritons_openai_frontend_serves_tensorrt_llm_and_vllm(host: Host) -> None:
    """The repository's entries are made of the image's own templates, as in production."""
    llm = "/data/triton/llm"
    yaml = f"model: {WEIGHTS}/tiny\\nkv_cache_config: {{free_gpu_memory_fraction: 0.2}}"
    yaml += "\\ntriton_config: {max_batch_size: 0, decoupled: true}"
    vllm_config = 'backend: "vllm" instance_group [ { count: 1 kind: KIND_MODEL } ]'
    arguments = json.dumps({"model": f"{WEIGHTS}/tiny", "gpu_memory_utilization": 0.3})
    host.root(
        f"rm -rf {llm}; mkdir -p {llm}/talk/1; "
        f"docker run --rm {IMAGE} tar -C /app/all_models/llmapi -c tensorrt_llm | tar -C {llm} -x; "
        f"printf '{yaml}\\n' > {llm}/tensorrt_llm/1/model.yaml; "
        f"echo '{vllm_config}' > {llm}/talk/config.pbtxt; "
        f"echo '{arguments}' > {llm}/talk/1/model.json"
    )
    main = "/opt/tritonserver/python/openai/openai_frontend/main.py"
    host.root(
        f"{RUN} -d --name test-frontend --gpus '\"device=0\"' -v {llm}:{llm}:ro "
        f"-p 127.0.0.1:8100:9000 -p 127.0.0.1:8101:8000 {IMAGE} python3 {main} "
        f"--model-repository {llm} --tokenizer {WEIGHTS}/tiny --enable-kserve-frontends"
    )
    try:
        host.root(
            "for i in $(seq 300); do curl -sf localhost:8100/health/ready && exit; sleep .1; done; "
            "docker logs test-frontend >&2; exit 1"
        )
        assert str(_chat(host, "talk")["id"]).startswith("cmpl-")
        body = json.dumps({"text_input": "a berth", "streaming": True})
        path = "localhost:8101/v2/models/tensorrt_llm/generate_stream"
        lines = [row for row in host.root(f"curl -sN {path} -d '{body}'").splitlines() if row]
        texts = [json.loads(row.removeprefix("data: "))["text_output"] for row in lines]
        assert all(text.startswith("tiny") for text in texts)
        assert len(texts[-1]) > len(texts[0])
        _stops_cleanly(host, "test-frontend")
    finally:
        host.root("docker rm -f test-frontend")
