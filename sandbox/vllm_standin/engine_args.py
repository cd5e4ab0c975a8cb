"""model.json as engine arguments, with vLLM's words for what it does not accept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .argument_names import ENGINE_ARGUMENTS
from .version import default_utilization


@dataclass(frozen=True)
class EngineArgs:
    """What of the arguments changes memory, placement or answers."""

    model: str
    tensor_parallel_size: int
    pipeline_parallel_size: int
    executor: str | None
    gpu_memory_utilization: float
    max_model_len: int | None
    max_num_batched_tokens: int
    kv_cache_dtype: str
    enforce_eager: bool
    disable_log_stats: bool
    kv_cache_memory_bytes: int | None

    @property
    def world_size(self) -> int:
        return self.tensor_parallel_size * self.pipeline_parallel_size


def _true(value: Any) -> bool:
    return str(value).lower() == "true"


def parse(raw: dict[str, Any]) -> EngineArgs:
    """Check names and ranges; raises what AsyncEngineArgs and its configs raise."""
    for name in raw:
        if name not in ENGINE_ARGUMENTS:
            raise TypeError(
                f"AsyncEngineArgs.__init__() got an unexpected keyword argument '{name}'"
            )
    utilization = float(raw.get("gpu_memory_utilization", default_utilization()))
    if not 0 < utilization <= 1:
        field = "gpu_memory_utilization"
        limit = "less than or equal to 1" if utilization > 1 else "greater than 0"
        raise ValueError(
            f"1 validation error for CacheConfig\n{field}\n  Input should be {limit} "
            f"[input_value={utilization}, input_type=float]"
        )
    length = raw.get("max_model_len")
    kv_bytes = raw.get("kv_cache_memory_bytes")
    return EngineArgs(
        model=str(raw.get("model", "Qwen/Qwen3-0.6B")),
        tensor_parallel_size=int(raw.get("tensor_parallel_size", 1)),
        pipeline_parallel_size=int(raw.get("pipeline_parallel_size", 1)),
        executor=raw.get("distributed_executor_backend"),
        gpu_memory_utilization=utilization,
        max_model_len=int(length) if length not in (None, "auto", -1) else None,
        max_num_batched_tokens=int(raw.get("max_num_batched_tokens", 2048)),
        kv_cache_dtype=str(raw.get("kv_cache_dtype", "auto")),
        enforce_eager=_true(raw.get("enforce_eager", False)),
        disable_log_stats=_true(raw.get("disable_log_stats", False)),
        kv_cache_memory_bytes=int(kv_bytes) if kv_bytes else None,
    )
