"""On which of a host's layouts a model would fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from models.memory.asked import Asked
from models.memory.fit import memory_plan
from models.weights import Weights


@dataclass(frozen=True)
class Layout:
    """A split that fits."""

    tensor_parallel_size: int
    pipeline_parallel_size: int
    largest_max_model_len: int
    """Longest context on it, in tokens."""

    @property
    def gpus(self) -> int:
        """Number of GPUs it takes."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    def __str__(self) -> str:
        split = f"tp {self.tensor_parallel_size} × pp {self.pipeline_parallel_size}"
        plural = "s" if self.gpus > 1 else ""
        return (
            f"{self.gpus} GPU{plural} ({split}): max_model_len up to {self.largest_max_model_len}"
        )


def layouts(
    weights: Weights, asked: Asked, cuda_mib_of_hosts_gpus: Sequence[int]
) -> tuple[Layout, ...]:
    """Splits of 1 to all of the host's GPUs on which `asked` fits, fewest GPUs first.

    Args:
        asked: its own parallelism is not looked at.
        cuda_mib_of_hosts_gpus: memory of each as CUDA reports it; the largest are taken first.
    """
    return _layouts(weights, asked, tuple(sorted(cuda_mib_of_hosts_gpus, reverse=True)))


@lru_cache(maxsize=4096)
def _layouts(weights: Weights, asked: Asked, gpus: tuple[int, ...]) -> tuple[Layout, ...]:
    found = []
    for number in range(1, len(gpus) + 1):
        for tensor in range(number, 0, -1):
            if number % tensor:
                continue
            pipeline = number // tensor
            split = replace(asked, tensor_parallel_size=tensor, pipeline_parallel_size=pipeline)
            plan = memory_plan(weights, split, gpus[:number])
            if plan.fits and plan.largest_max_model_len:
                found.append(Layout(tensor, pipeline, plan.largest_max_model_len))
    return tuple(found)
