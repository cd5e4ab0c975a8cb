"""What one rank takes of its GPU, stage by stage, and what vLLM prints where it does not fit.

The split of the overhead is assumed; that overhead of about 1.25 GiB in all fits every layout
measured on 4 × L4, and so does half a GiB of CUDA graphs on top of the budget up to 0.19.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import kv_cache
from .checkpoint import Checkpoint
from .engine_args import EngineArgs
from .version import GIB, graphs_within_budget

CONTEXT_BYTES = 350 * 2**20
OVERHEAD_BYTES = int(1.25 * GIB)
"""CUDA context, libraries and the activation peak together."""
GRAPH_BYTES = GIB // 2


class DoesNotFitError(Exception):
    """The engine's own words; `kind` is the exception class that vLLM raises."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Budget:
    """One rank's shares in bytes, and the longest request it will take in tokens."""

    requested: int
    weights: int
    kv: int
    graphs: int
    max_model_len: int

    @property
    def resident(self) -> int:
        """Held once the model serves: the pool takes what is left of the budget."""
        return self.weights + OVERHEAD_BYTES + self.kv + self.graphs


def requested_bytes(arguments: EngineArgs, total: int) -> int:
    return math.ceil(arguments.gpu_memory_utilization * total)


def check_start(arguments: EngineArgs, total: int, free: int, device: int) -> None:
    """vLLM's first look at the GPU, before anything is loaded."""
    requested = requested_bytes(arguments, total)
    if free < requested:
        raise DoesNotFitError(
            "ValueError",
            f"Free memory on device cuda:{device} ({free / GIB:.2f}/{total / GIB:.2f} GiB) on "
            f"startup is less than desired GPU memory utilization "
            f"({arguments.gpu_memory_utilization}, {requested / GIB:.2f} GiB). Decrease GPU memory "
            "utilization or reduce GPU memory used by other processes.",
        )


def plan(arguments: EngineArgs, checkpoint: Checkpoint, total: int) -> Budget:
    """The budget of each rank on a GPU of `total` bytes as CUDA reports it."""
    tensor, pipeline = arguments.tensor_parallel_size, arguments.pipeline_parallel_size
    weights = checkpoint.resident_bytes(tensor, pipeline)
    length = arguments.max_model_len or int(checkpoint.text["max_position_embeddings"])
    graphs = 0 if arguments.enforce_eager else GRAPH_BYTES
    within = graphs if graphs_within_budget() else 0
    available = requested_bytes(arguments, total) - weights - OVERHEAD_BYTES - within
    if arguments.kv_cache_memory_bytes:
        available = arguments.kv_cache_memory_bytes
    return Budget(requested_bytes(arguments, total), weights, available, graphs, length)


def check_kv(arguments: EngineArgs, checkpoint: Checkpoint, budget: Budget) -> None:
    """Is there a pool at all, and does one request of full length fit in it?"""
    if budget.kv <= 0:
        raise DoesNotFitError(
            "ValueError",
            "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` "
            "when initializing the engine.",
        )
    types = kv_cache.layer_types(checkpoint.text, arguments.tensor_parallel_size)
    quantization = checkpoint.config.get("quantization_config") or {}
    element = kv_cache.element_bytes(arguments.kv_cache_dtype, quantization)
    batched, length = arguments.max_num_batched_tokens, budget.max_model_len
    # Each pipeline stage keeps its own layers only.
    share = arguments.pipeline_parallel_size
    needed = kv_cache.needed_bytes(types, element, length, batched) // share
    if needed > budget.kv:
        most = kv_cache.longest(types, element, budget.kv * share, batched)
        estimate = f"Based on the available memory, the estimated maximum model length is {most}. "
        raise DoesNotFitError(
            "ValueError",
            f"To serve at least one request with the models's max seq len ({length}), "
            f"({needed / GIB:.2f} GiB KV cache is needed, which is larger than the available KV "
            f"cache memory ({budget.kv / GIB:.2f} GiB). {estimate if most else ''}"
            "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when "
            "initializing the engine.",
        )


def out_of_memory(asked: int, total: int, free: int, device: int, mine: int) -> DoesNotFitError:
    """PyTorch's text, with its figures in the unit it would choose."""
    amount = f"{asked / GIB:.2f} GiB" if asked >= GIB else f"{asked / 2**20:.2f} MiB"
    left = f"{free / GIB:.2f} GiB" if free >= GIB else f"{free / 2**20:.2f} MiB"
    return DoesNotFitError(
        "torch.OutOfMemoryError",
        f"CUDA out of memory. Tried to allocate {amount}. GPU {device} has a total capacity of "
        f"{total / GIB:.2f} GiB of which {left} is free. Including non-PyTorch memory, this "
        f"process has {mine / GIB:.2f} GiB memory in use.",
    )
