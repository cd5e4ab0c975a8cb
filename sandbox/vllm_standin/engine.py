"""The engine: loads by taking memory rank by rank, serves while all its processes live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import budget, kv_cache, ranks
from .budget import Budget, DoesNotFitError
from .checkpoint import Checkpoint
from .driver import devices
from .engine_args import EngineArgs
from .placement import titles
from .version import load_seconds

ENGINE_FAILED = "Engine core initialization failed. See root cause above. Failed core proc(s): {}"
DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
_WEIGHTS_HINT = (
    "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free "
    "memory for weights, increasing --tensor-parallel-size, or using --quantization."
)


@dataclass
class Engine:
    checkpoint: Checkpoint
    max_model_len: int
    workers: list[ranks.Rank]
    kv_tokens: int = 0
    """Tokens of one sequence that would fill the KV pool."""

    @property
    def alive(self) -> bool:
        return all(worker.alive for worker in self.workers)

    def meet_a_request(self) -> None:
        """A checkpoint whose kernels do not work here takes the engine down with the first one."""
        if self.checkpoint.ailment == "crashes":
            for worker in self.workers:
                worker.process.kill()
                worker.process.wait(timeout=30)

    @property
    def is_mute(self) -> bool:
        """Whether its tokens are all empty, as with weights that its number format spoils."""
        return self.checkpoint.ailment == "mute"

    def shutdown(self) -> None:
        """Give the memory back, which takes a moment, and see the processes out."""
        for worker in self.workers:
            worker.close()
        for worker in self.workers:
            worker.process.wait(timeout=30)


def grow(workers: Sequence[ranks.Rank], sizes: Sequence[int], seconds: float) -> list[int]:
    """Let all ranks grow at once; returns the free bytes each saw, or raises CUDA's error."""
    for worker, size in zip(workers, sizes, strict=True):
        worker.ask(size, seconds)
    answers = [worker.answer() for worker in workers]
    for worker, found in zip(workers, answers, strict=True):
        if found["oom"]:
            raise budget.out_of_memory(
                found["asked"], worker.total, found["free"], worker.device, worker.held
            )
    return [int(found["free"]) for found in answers]


def _load(
    arguments: EngineArgs,
    checkpoint: Checkpoint,
    workers: list[ranks.Rank],
    log: Callable[[str], None],
) -> Budget:
    plan = min((budget.plan(arguments, checkpoint, w.total) for w in workers), key=lambda p: p.kv)
    same = len(workers)
    free = grow(workers, [budget.CONTEXT_BYTES] * same, 0.05)
    for worker, left in zip(workers, free, strict=True):
        # vLLM's snapshot is taken with the context already there.
        budget.check_start(arguments, worker.total, left, worker.device)
    try:
        grow(workers, [plan.weights] * same, load_seconds(checkpoint.total_bytes))
    except DoesNotFitError:
        log(_WEIGHTS_HINT)
        raise
    grow(workers, [budget.OVERHEAD_BYTES - budget.CONTEXT_BYTES] * same, 0.05)
    budget.check_kv(arguments, checkpoint, plan)
    if checkpoint.is_nvfp4 and arguments.pipeline_parallel_size > 1:
        raise DoesNotFitError(
            "NotImplementedError",
            "Pipeline parallelism is not supported for this model. Supported models implement the "
            "`SupportsPP` interface.",
        )
    grow(workers, [plan.kv + plan.graphs] * same, 0.2)
    return plan


def start(
    arguments: EngineArgs,
    checkpoint: Checkpoint,
    gpus: list[devices.Gpu],
    log: Callable[[str], None],
) -> Engine:
    """Bring the engine up. A failure inside it is logged; its caller sees only that it failed."""
    names = titles(arguments)
    workers = [ranks.start(i, g, n) for i, (g, n) in enumerate(zip(gpus, names, strict=True))]
    engine = Engine(checkpoint, 0, workers)
    try:
        plan = _load(arguments, checkpoint, workers, log)
    except (DoesNotFitError, RuntimeError, BrokenPipeError) as error:
        kind = error.kind if isinstance(error, DoesNotFitError) else type(error).__name__
        log(f"(EngineCore_DP0) ERROR EngineCore failed to start.\n{kind}: {error}")
        engine.shutdown()
        raise RuntimeError(ENGINE_FAILED) from error
    engine.max_model_len = plan.max_model_len
    engine.kv_tokens = _kv_tokens(arguments, checkpoint, plan)
    return engine


def _kv_tokens(arguments: EngineArgs, checkpoint: Checkpoint, plan: Budget) -> int:
    types = kv_cache.layer_types(checkpoint.text, arguments.tensor_parallel_size)
    quantization = checkpoint.config.get("quantization_config") or {}
    element = kv_cache.element_bytes(arguments.kv_cache_dtype, quantization)
    pool = plan.kv * arguments.pipeline_parallel_size
    return kv_cache.longest(types, element, pool, arguments.max_num_batched_tokens)
