"""Reasons that engines really give, and the words they are refused in."""

from __future__ import annotations

import pytest

from components.providers.load_failure import LONGEST_QUOTE, TABLE, load_refused, recognise

REASONS = {
    "engine-files": "RuntimeError: Failed to deserialize cuda engine: Error opening engine file: "
    "/data/triton/weights/built/rank0.engine",
    "all-models": "RuntimeError: the image holds no /app/all_models/llmapi/tensorrt_llm/1/model.py",
    "memory-at-startup": "ValueError: Free memory on device (3.21/22.05 GiB) on startup is less "
    "than desired GPU memory utilization (0.9, 19.84 GiB). Decrease GPU memory utilization or "
    "reduce GPU memory used by other processes.",
    "kv-cache": "ValueError: To serve at least one request with the models's max seq len (131072), "
    "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory (3.1 GiB).",
    "cuda-oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 "
    "has a total capacity of 22.05 GiB of which 31.44 MiB is free.",
    "attention-heads": "ValueError: Total number of attention heads (10) must be divisible by "
    "tensor parallel size (4).",
    "too-few-gpus": "ValueError: World size (4) is larger than the number of available GPUs (1) in "
    "this node. If this is intentional and you are using Ray, set …",
    "kind-gpu": "instance group a_0 of model a has kind KIND_GPU but specifies no gpus",
    "ray-missing": "ModuleNotFoundError: No module named 'ray'",
    "needs-ray": "AssertionError: daemonic processes are not allowed to have children",
    "unknown-argument": "TypeError: AsyncEngineArgs.__init__() got an unexpected keyword argument "
    "'max_model_length'",
    "architecture": "ValueError: The checkpoint you are trying to load has model type `gemma4` but "
    "Transformers does not recognize this architecture.",
    "dtype": "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least "
    "8.0. Your Tesla T4 GPU has compute capability 7.5.",
    "weights": "OSError: /data/triton/weights/gemma does not appear to have a file named "
    "config.json.",
    "two-repositories": "failed to load 'a', model appears in two or more repositories",
    "not-polled": "failed to load 'a', failed to poll from model repository",
    "no-version": "at least one version must be available under the version policy of model 'a'",
    "no-backend": "unable to find backend library for backend 'vllm', try specifying "
    "runtime on the model configuration.",
    "shared-memory": "Failed to initialize stub: No space left on device. shm region",
    "nccl": "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:2251, unhandled system error",
    "stub": "Internal: Failed to initialize stub, stub process exited unexpectedly: a_0_0",
}


@pytest.mark.parametrize("kind", [failure.kind for failure in TABLE])
def test_a_reason_that_an_engine_gives_is_recognised(kind: str) -> None:
    assert recognise(REASONS[kind]).kind == kind


def test_a_reason_is_found_inside_tritons_own_words() -> None:
    wrapped = (
        "load failed for model 'a': version 1 is at UNAVAILABLE state: Internal: "
        f"{REASONS['cuda-oom']}\n\nAt:\n  /models/a/1/model.py(40): initialize\n;\n"
    )
    assert recognise(wrapped).kind == "cuda-oom"


def _refused(reason: str, still_held: str = "") -> str:
    return str(
        load_refused(
            reason,
            model="demo.gemma",
            unit="triton@2.service",
            instance="triton@2",
            gpus=["GPU-1"],
            still_held=still_held,
        )
    )


@pytest.mark.parametrize("kind", [failure.kind for failure in TABLE])
def test_every_refusal_quotes_its_reason_and_names_the_model(kind: str) -> None:
    text = _refused(REASONS[kind])
    assert "demo.gemma" in text
    assert " ".join(REASONS[kind].split())[:60] in text
    assert "{" not in text


def test_an_unknown_reason_is_quoted_and_sent_to_the_units_journal() -> None:
    text = _refused("Internal: the moon is in the wrong house")
    assert "the moon is in the wrong house" in text
    assert "journalctl -u triton@2.service" in text


def test_a_long_reason_keeps_its_beginning_and_its_end() -> None:
    text = _refused("load failed for model" + " File x" * 2000 + " RuntimeError: the end")
    assert "load failed for model" in text
    assert "RuntimeError: the end" in text
    assert len(text) < LONGEST_QUOTE + 500


def test_memory_that_is_still_held_is_named() -> None:
    text = _refused("CUDA out of memory", "GPU-1: 900 MiB in use by python3 (pid 7, 900 MiB)")
    assert "Memory is still held: GPU-1: 900 MiB in use by python3 (pid 7" in text
