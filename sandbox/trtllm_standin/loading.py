"""Loading as TensorRT-LLM's PyTorch backend does it: the KV pool is a share of what weights leave.

So it takes `fraction` of the *free* memory after the weights, where vLLM's budget is a share of the
whole GPU. The split of the overhead is assumed, as is the workers' name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.vllm_standin import budget, checkpoint, kv_cache, ranks
from sandbox.vllm_standin.budget import DoesNotFitError
from sandbox.vllm_standin.checkpoint import Checkpoint
from sandbox.vllm_standin.driver import visible_gpus
from sandbox.vllm_standin.engine import Engine, grow
from sandbox.vllm_standin.version import load_seconds

FAILED = "Executor worker returned error"
DEAD = "Executor worker process died unexpectedly"
"""Assumed."""
WORKER = "mpi4py.futures.server"
_BATCHED = 8192


@dataclass(frozen=True)
class Wanted:
    """What of the LLM class's arguments changes memory; lengths in tokens."""

    model: str
    tp: int = 1
    pp: int = 1
    memory_fraction: float = 0.9
    kv_tokens: int | None = None
    max_seq_len: int | None = None


def _kv_bytes(wanted: Wanted, found: Checkpoint, free: int) -> tuple[int, int]:
    """The pool of a rank, and the tokens of one sequence that fill it."""
    types = kv_cache.layer_types(found.text, wanted.tp)
    element = kv_cache.element_bytes("auto", found.config.get("quantization_config") or {})
    pool = int(wanted.memory_fraction * free)
    if wanted.kv_tokens is not None:
        capped = kv_cache.needed_bytes(types, element, wanted.kv_tokens, _BATCHED) // wanted.pp
        pool = min(pool, capped)
    if pool <= 0:
        raise DoesNotFitError("RuntimeError", "Impossible to fit any sequence in kvCache")
    return pool, kv_cache.longest(types, element, pool * wanted.pp, _BATCHED)


def _take(wanted: Wanted, found: Checkpoint, workers: list[ranks.Rank]) -> int:
    same = len(workers)
    weights = found.resident_bytes(wanted.tp, wanted.pp)
    grow(workers, [budget.CONTEXT_BYTES] * same, 0.05)
    grow(workers, [weights] * same, load_seconds(found.total_bytes))
    free = grow(workers, [budget.OVERHEAD_BYTES - budget.CONTEXT_BYTES] * same, 0.05)
    pool, tokens = _kv_bytes(wanted, found, min(free))
    grow(workers, [pool] * same, 0.2)
    return tokens


def load(
    wanted: Wanted,
    log: Callable[[str], None],
    found: Checkpoint | None = None,
    devices: list[int] | None = None,
) -> Engine:
    """Bring the engine up on the first GPUs that this process sees, or on those of `devices`.

    `found` are weights that were read already.

    Raises:
        ValueError, OSError: no GPU, or no model there.
        RuntimeError: it failed; the cause is logged.
    """
    gpus = visible_gpus()
    if not gpus:
        raise ValueError("No GPU devices found on the node")
    if devices:
        gpus = [gpus[index] for index in devices if index < len(gpus)]
    world = wanted.tp * wanted.pp
    if world > len(gpus):
        raise ValueError(f"World size {world} exceeds the {len(gpus)} GPUs of the node")
    found = found or checkpoint.read(wanted.model)
    workers = [ranks.start(index, gpu, WORKER) for index, gpu in enumerate(gpus[:world])]
    length = wanted.max_seq_len or int(found.text["max_position_embeddings"])
    engine = Engine(found, length, workers)
    try:
        engine.kv_tokens = _take(wanted, found, workers)
    except (DoesNotFitError, RuntimeError, BrokenPipeError) as error:
        kind = error.kind if isinstance(error, DoesNotFitError) else type(error).__name__
        log(f"[TRT-LLM] [E] Failed to initialize executor on rank 0:\n{kind}: {error}")
        engine.shutdown()
        raise RuntimeError(FAILED) from error
    return engine
