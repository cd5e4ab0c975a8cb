"""What the engine may take of a GPU, in bytes (vLLM, `v1/worker/utils.py`, `request_memory`)."""

from __future__ import annotations

import math

from models.memory.asked import Asked

MIB = 2**20


def cuda_mib(memory_mib: int, reserved_mib: int | None = None) -> int:
    """A GPU's memory as CUDA reports it, from nvidia-smi's `memory.total`; MiB.

    Args:
        reserved_mib: nvidia-smi's `memory.reserved`, which makes the difference. Where it is not
            known: what an L4 reserves in proportion (469 of 23,034), at most what an A100 of 80 GB
            does (768). It was 582 of 46,068 on an L40S (vllm#15815): an upper bound.
    """
    if reserved_mib is None:
        reserved_mib = min(768, memory_mib * 469 // 23_034)
    return memory_mib - reserved_mib


def utilization(asked: Asked) -> float:
    """Share of the GPU that the engine takes: 0.90 to 0.19, 0.92 from 0.20 where it is not said."""
    if asked.gpu_memory_utilization is not None:
        return asked.gpu_memory_utilization
    if asked.engine == "trtllm":
        return 0.9  # KvCacheConfig.free_gpu_memory_fraction (tensorrt_llm/llmapi/llm_args.py)
    return 0.92 if asked.before(0, 20) is False else 0.90


def requested_bytes(asked: Asked, total: int) -> int:
    """The budget on a GPU of `total` bytes, as CUDA reports it (nvidia-smi's total is larger)."""
    return math.ceil(utilization(asked) * total)


def budget_of_free_bytes(asked: Asked, total: int, before_the_pool: int) -> int:
    """What TensorRT-LLM takes of a GPU: all that lies there before the KV cache, and of the rest
    the share that it is told.

    PyTorch back end: (total - peak of a trial run + what the trial's own cache took) x fraction
    (`_cal_max_memory` in tensorrt_llm/_torch/pyexecutor/_util.py, 1.0 to 1.3). Inflight batcher:
    the same of "GPU memory after loading the model" (tensorrtllm_backend, docs/model_config.md).

    Args:
        total: the GPU's memory as CUDA reports it, in bytes.
        before_the_pool: weights, context, libraries and activation peak, in bytes.
    """
    free = max(0, total - before_the_pool)
    return min(total, before_the_pool) + math.floor(utilization(asked) * free)


def graphs_within(asked: Asked) -> bool:
    """Whether CUDA graphs are part of the budget: from 0.20; before, they come on top."""
    return asked.before(0, 20) is not True


def large_gpu(total: int) -> bool:
    """A GPU for which vLLM's defaults are the large ones (≥ 70 GiB; an A100 is not, see below).

    An A100 of 80 GB has the small defaults. Memory alone does not tell it from an H100, so it is
    counted with the large ones, which need more.
    """
    return total >= 70 * 2**30


def batched_tokens(asked: Asked, total: int) -> int:
    """`max_num_batched_tokens`, or its default for the OpenAI server and Triton's backend."""
    said = asked.number("max_num_batched_tokens")
    if said is not None:
        return said
    default = 8192 if large_gpu(total) else 2048
    if total >= 160 * 2**30 and asked.before(0, 28) is not True:
        default = 16384
    return max(1, min(default, sequences(asked, total) * asked.max_model_len))


def sequences(asked: Asked, total: int) -> int:
    """`max_num_seqs`, or its default."""
    return asked.number("max_num_seqs") or (1024 if large_gpu(total) else 256)
