"""Does it fit, and with which longest context: each term per GPU, in MiB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from models.memory.architecture import architecture
from models.memory.asked import Asked
from models.memory.budget import (
    MIB,
    batched_tokens,
    budget_of_free_bytes,
    graphs_within,
    requested_bytes,
    sequences,
    utilization,
)
from models.memory.kv_cache import Pool, need_bytes, pool
from models.memory.layers import Architecture, Unknown
from models.memory.overhead import graph_bytes, overhead_bytes
from models.memory.resident import kv_element_bytes
from models.memory.sharding import stage_weights
from models.weights import Weights

WINDOWS = "max_attention_window"
"""TensorRT-LLM's name for each layer's window, as `Asked.engine_args` has it for its engines."""
LONGEST = 2**22
"""Tokens; the bound of the search where config.json has none."""


@dataclass(frozen=True)
class GpuTerms:
    """One GPU's shares, in MiB, rounded up."""

    weights_mib: int
    kv_mib: int
    """For one request of max_model_len; the engine takes the rest of the budget for more."""
    overhead_mib: int
    """CUDA context, libraries, activation peak."""
    graphs_mib: int
    budget_mib: int
    """What the engine may take."""
    needed_mib: int
    """Weights, KV cache, overhead, and graphs where they are part of the budget."""
    cuda_mib: int
    """The GPU's memory as CUDA reports it."""
    graphs_on_top: bool
    held_mib: int
    """What the GPU shows as used when the model serves: the pool takes what is spare."""

    @property
    def spare_mib(self) -> int:
        """What is left of the budget, for further requests; negative: what is missing."""
        return self.budget_mib - self.needed_mib


@dataclass(frozen=True)
class MemoryPlan:
    """The answer."""

    asked: Asked
    gpus: tuple[GpuTerms, ...] = ()
    """One a GPU, in the order of ranks; empty where the architecture is not known."""
    fits: bool | None = None
    """None: not known."""
    unknown: str = ""
    """Why it is not known."""
    largest_max_model_len: int | None = None
    """Longest context that fits, in tokens; 0: none does. None: not known."""
    notes: tuple[str, ...] = ()

    def shown(self) -> str:
        """Each term, one line a GPU or one for all where they are alike."""
        if self.unknown:
            return f"not known: {self.unknown}"
        alike = len(set(self.gpus)) == 1
        named = f"each of {len(self.gpus)} GPUs" if len(self.gpus) > 1 else "GPU"
        if alike:
            return self._line(named, self.gpus[0])
        return "\n".join(self._line(f"rank {n}", gpu) for n, gpu in enumerate(self.gpus))

    def _line(self, named: str, gpu: GpuTerms) -> str:
        parts = f"weights {gpu.weights_mib} + KV {gpu.kv_mib} + overhead {gpu.overhead_mib}"
        if gpu.graphs_mib and not gpu.graphs_on_top:
            parts += f" + graphs {gpu.graphs_mib}"
        budget = f"{gpu.budget_mib} MiB ({utilization(self.asked):g} × {gpu.cuda_mib})"
        if _kv_bytes(self.asked) is not None:
            budget = f"{gpu.budget_mib} MiB"
        elif self.asked.engine == "trtllm":
            first = f"{gpu.weights_mib + gpu.overhead_mib}"
            rest = f"{utilization(self.asked):g} of the rest of {gpu.cuda_mib}"
            budget = f"{gpu.budget_mib} MiB ({first} and {rest})"
        spare = gpu.spare_mib
        left = f"{spare} MiB spare" if spare >= 0 else f"{-spare} MiB too much"
        top = f"; graphs {gpu.graphs_mib} on top" if gpu.graphs_mib and gpu.graphs_on_top else ""
        return f"{named}: {parts} = {gpu.needed_mib} of {budget}: {left}{top}"


def memory_plan(weights: Weights, asked: Asked, cuda_mib: Sequence[int]) -> MemoryPlan:
    """What a model takes on each GPU, and whether it fits.

    Args:
        weights: what its directory holds.
        asked: how it is to be served.
        cuda_mib: memory of each of its GPUs as CUDA reports it, in MiB, in the order of ranks
            (tensor ranks of the first stage, then of the second, …).

    Never raises for what the weights or the arguments hold. The same question costs nothing twice.
    """
    return _plan(weights, asked, tuple(cuda_mib))


@lru_cache(maxsize=16384)
def _plan(weights: Weights, asked: Asked, cuda_mib: tuple[int, ...]) -> MemoryPlan:
    model = architecture(weights)
    wrong = _impossible(model, asked, cuda_mib)
    if isinstance(model, Unknown) or wrong:
        reason = model.reason if isinstance(model, Unknown) else wrong
        return MemoryPlan(asked, unknown=reason, notes=asked.notes())
    element = kv_element_bytes(weights, asked)
    if element is None:
        reason = f"kv_cache_dtype {asked.text('kv_cache_dtype')}: its page size is not known"
        return MemoryPlan(asked, unknown=reason, notes=asked.notes())
    plan = _Question(weights, model, asked, cuda_mib, element).plan()
    if asked.engine == "trtllm" and not asked.text(WINDOWS):
        return _unless_windows_matter(plan, weights, model, cuda_mib, element)
    return plan


def _unless_windows_matter(
    plan: MemoryPlan,
    weights: Weights,
    model: Architecture,
    cuda_mib: tuple[int, ...],
    element: float,
) -> MemoryPlan:
    """TensorRT-LLM keeps no more than a layer's window only where it is told the windows; what
    fits either way fits, what fits neither way does not, and between them nobody knows."""
    asked = plan.asked
    given = {**asked.engine_args, "disable_hybrid_kv_cache_manager": True}
    whole = _Question(weights, model, replace(asked, engine_args=given), cuda_mib, element).plan()
    if whole.fits == plan.fits:
        return plan if not plan.fits else replace(whole, asked=asked)
    return replace(
        plan,
        fits=None,
        unknown="it fits if TensorRT-LLM keeps of its layers with a window no more than that, "
        "which `trtllm_args: {kv_cache_config: {max_attention_window: [...]}}` tells it to",
    )


def _impossible(model: Architecture | Unknown, asked: Asked, cuda_mib: tuple[int, ...]) -> str:
    """Why there is nothing to work out, whatever the memory; empty where there is."""
    if isinstance(model, Unknown):
        return ""
    tensor, pipeline = asked.tensor_parallel_size, asked.pipeline_parallel_size
    if tensor < 1 or pipeline < 1 or asked.max_model_len < 1:
        return "tensor and pipeline parallelism and max_model_len are 1 or more"
    if len(cuda_mib) != asked.width:
        return f"tp {tensor} × pp {pipeline} = {asked.width} GPU(s), and {len(cuda_mib)} are given"
    if model.heads % tensor:
        return f"tp {tensor} does not divide the model's {model.heads} attention heads"
    if pipeline > len(model.layers):
        return f"pp {pipeline} is more than the model's {len(model.layers)} layers"
    return ""


@dataclass(frozen=True)
class _Question:
    weights: Weights
    model: Architecture
    asked: Asked
    cuda_mib: tuple[int, ...]
    element: float

    def plan(self) -> MemoryPlan:
        gpus = self.terms(self.asked.max_model_len)
        longest = self.longest()
        notes = [*stage_weights(self.weights, self.model, self.asked).notes, *self.asked.notes()]
        context = self.model.context
        if context and self.asked.max_model_len > context:
            notes.append(f"config.json allows a context of {context} tokens at most")
        if any(gpu.graphs_on_top and gpu.held_mib > gpu.cuda_mib for gpu in gpus):
            notes.append(
                "CUDA graphs come on top of the budget before vLLM 0.20: too little is left"
            )
        return MemoryPlan(
            self.asked,
            gpus,
            fits=self.fits(self.asked.max_model_len),
            largest_max_model_len=longest,
            notes=tuple(notes),
        )

    @cached_property
    def smallest(self) -> int:
        """Bytes of the smallest GPU, which the engine's defaults and its pool go by."""
        return min(self.cuda_mib) * MIB

    @cached_property
    def pool(self) -> Pool:
        return pool(self.model, self.asked, self.element, sequences(self.asked, self.smallest))

    def kv_bytes(self, length: int) -> tuple[int, ...]:
        batched = batched_tokens(self.asked, self.smallest)
        return need_bytes(self.pool, self.model, self.asked, length, batched)

    def overhead(self, length: int) -> int:
        tokens, rows = (count(self.asked, self.smallest) for count in (batched_tokens, sequences))
        return overhead_bytes(self.model, self.asked, length, tokens, rows)

    def terms(self, length: int) -> tuple[GpuTerms, ...]:
        stage_bytes = stage_weights(self.weights, self.model, self.asked).bytes
        kv, overhead = self.kv_bytes(length), self.overhead(length)
        graphs, within = graph_bytes(self.asked), graphs_within(self.asked)
        trtllm = self.asked.engine == "trtllm"
        if trtllm:
            graphs = 0  # They come out of the share that the KV cache leaves.
        fixed = _kv_bytes(self.asked)
        found = []
        for rank, total in enumerate(self.cuda_mib):
            stage = rank // self.asked.tensor_parallel_size
            pool_bytes = kv[stage] if fixed is None else fixed
            parts = [stage_bytes[stage], pool_bytes, overhead, graphs if within else 0]
            needed = sum(_mib(part) for part in parts)
            # With a pool of fixed size the utilisation is ignored.
            budget = requested_bytes(self.asked, total * MIB) // MIB if fixed is None else total
            if trtllm and fixed is None:
                first = (_mib(stage_bytes[stage]) + _mib(overhead)) * MIB
                budget = budget_of_free_bytes(self.asked, total * MIB, first) // MIB
            held = budget if fixed is None else needed
            found.append(
                GpuTerms(
                    weights_mib=_mib(stage_bytes[stage]),
                    kv_mib=_mib(pool_bytes),
                    overhead_mib=_mib(overhead),
                    graphs_mib=_mib(graphs),
                    budget_mib=budget,
                    needed_mib=needed,
                    cuda_mib=total,
                    graphs_on_top=not within,
                    held_mib=held + (0 if within else _mib(graphs)),
                )
            )
        return tuple(found)

    def fits(self, length: int) -> bool:
        fixed = _kv_bytes(self.asked)
        if fixed is not None and max(self.kv_bytes(length)) > fixed:
            return False
        return all(gpu.spare_mib >= 0 for gpu in self.terms(length))

    def longest(self) -> int:
        low, high = 0, self.model.context or LONGEST
        while low < high:
            middle = (low + high + 1) // 2
            if self.fits(middle):
                low = middle
            else:
                high = middle - 1
        return low


def _mib(count: float) -> int:
    return math.ceil(count / MIB)


def _kv_bytes(asked: Asked) -> int | None:
    return asked.number("kv_cache_memory_bytes") or asked.number("kv_cache_memory")
