"""How a model is to be served, as far as it changes memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

# Change memory, and are in the arithmetic.
COUNTED = frozenset(
    {
        "block_size",
        "cpu_offload_gb",
        "disable_hybrid_kv_cache_manager",
        "enable_expert_parallel",
        "enable_prefix_caching",
        "enforce_eager",
        "kv_cache_dtype",
        "kv_cache_memory",
        "kv_cache_memory_bytes",
        "language_model_only",
        "mamba_ssm_cache_dtype",
        "max_num_batched_tokens",
        "max_num_seqs",
    }
)
# Change memory, and are not: each with what it does.
UNCOUNTED = {
    "data_parallel_size": "each replica needs GPUs of its own",
    "decode_context_parallel_size": "the KV cache of a request is split, which is not counted",
    "enable_eplb": "redundant experts are not counted",
    "enable_lora": "adapters are not counted",
    "kv_offloading_size": "memory of the host is not counted",
    "kv_transfer_config": "a connector may switch the grouping of KV layers off",
    "limit_mm_per_prompt": "the encoder's share of the overhead is not worked out from it",
    "mamba_cache_mode": "states are counted as in mode `align` or `none`",
    "mm_encoder_tp_mode": "towers are counted whole in any case",
    "num_gpu_blocks_override": "it replaces the number of KV blocks in vLLM's own check",
    "speculative_config": "the draft model's weights and KV cache are not counted",
}


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of the engine. Equal content is equal, so that plans can be remembered."""

    max_model_len: int
    """Longest context, in tokens."""
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    gpu_memory_utilization: float | None = None
    """Share of each GPU; None: the release's default."""
    dtype: str = "auto"
    quantization: str | None = None
    """vLLM's name of the quantisation; None: what the checkpoint says."""
    engine_args: Mapping[str, object] = field(default_factory=dict)
    """Further arguments of vLLM by their Python names."""
    vllm: str | None = None
    """Release of vLLM; None: unknown, and each rule is taken in its stricter form."""
    engine: Literal["vllm", "trtllm"] = "vllm"
    """What holds it. To TensorRT-LLM, `gpu_memory_utilization` is the KV cache's share of what is
    free once weights and activations are there."""

    @cached_property
    def key(self) -> tuple[object, ...]:
        """All of it, to compare by. `repr` tells 1 from True and from 1.0, whatever is nested."""
        arguments = tuple(sorted((name, repr(value)) for name, value in self.engine_args.items()))
        return (
            self.max_model_len,
            self.tensor_parallel_size,
            self.pipeline_parallel_size,
            self.gpu_memory_utilization,
            self.dtype,
            self.quantization,
            self.vllm,
            self.engine,
            arguments,
        )

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Asked) and self.key == other.key)

    @property
    def width(self) -> int:
        """Number of GPUs: tp × pp."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    def before(self, major: int, minor: int) -> bool | None:
        """Whether the release is older than `major.minor`; None where the release is unknown."""
        found = re.match(r"v?(\d+)\.(\d+)", self.vllm or "")
        return None if found is None else (int(found[1]), int(found[2])) < (major, minor)

    def number(self, name: str) -> int | None:
        """An engine argument that is a positive whole number; None for anything else."""
        value = self.engine_args.get(name)
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}", value.strip()):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        whole = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**60
        return int(value) if whole else None  # type: ignore[call-overload]

    def flag(self, name: str) -> bool | None:
        """An engine argument that is true or false; None where it is not given."""
        value = self.engine_args.get(name)
        if isinstance(value, str):
            value = {"true": True, "false": False}.get(value.strip().lower())
        return value if isinstance(value, bool) else None

    def text(self, name: str) -> str | None:
        """An engine argument that is a word; None where it is not given."""
        value = self.engine_args.get(name)
        return value.strip().lower() if isinstance(value, str) and value.strip() else None

    @property
    def drafts(self) -> int:
        """Tokens that speculative decoding drafts a step."""
        spec = self.engine_args.get("speculative_config")
        tokens = spec.get("num_speculative_tokens") if isinstance(spec, Mapping) else None
        return tokens if isinstance(tokens, int) and 0 < tokens < 1000 else 0

    def notes(self) -> tuple[str, ...]:
        """What changes memory and is not counted."""
        said = [f"{name}: {UNCOUNTED[name]}" for name in UNCOUNTED if self.engine_args.get(name)]
        if self.before(0, 0) is None and self.engine == "vllm":
            said.append("vLLM's release is unknown: each rule is taken in its stricter form")
        return tuple(said)
