"""vLLM's KV arithmetic: pages, groups and blocks. All sizes in bytes, for one GPU."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

BLOCK = 16
"""Tokens in a block of the layer type with the largest page."""


@dataclass(frozen=True)
class LayerType:
    """Layers whose pages are alike; `window` None means full attention."""

    kv_heads: int
    head_dim: int
    window: int | None

    def page(self, element: float) -> float:
        return BLOCK * self.kv_heads * 2 * self.head_dim * element


def layer_types(text: dict[str, Any], tensor_parallel: int) -> Counter[LayerType]:
    """How many layers of each type hold KV on one rank; layers that share another's hold none."""
    layers = int(text["num_hidden_layers"])
    kinds = text.get("layer_types") or ["full_attention"] * layers
    heads = int(text.get("num_key_value_heads") or text["num_attention_heads"])
    head_dim = text.get("head_dim") or int(text["hidden_size"]) // int(text["num_attention_heads"])
    found: Counter[LayerType] = Counter()
    for kind in kinds[: layers - int(text.get("num_kv_shared_layers") or 0)]:
        full = kind == "full_attention"
        own_heads, own_dim = heads, int(head_dim)
        if full and len(set(kinds)) > 1:
            own_heads = int(text.get("num_global_key_value_heads") or heads)
            own_dim = int(text.get("global_head_dim") or head_dim)
        window = None if full else int(text["sliding_window"])
        found[LayerType(max(1, own_heads // tensor_parallel), own_dim, window)] += 1
    return found


def element_bytes(kv_cache_dtype: str, quantization: dict[str, Any]) -> float:
    """`auto` is the model's bf16, or fp8 where the checkpoint says its KV cache is."""
    if kv_cache_dtype.startswith("fp8"):
        return 1.0
    if kv_cache_dtype == "auto" and quantization.get("kv_cache_scheme"):
        return 1.0
    return 2.0


def _groups(types: Counter[LayerType]) -> int:
    """Layers in a group: the smallest count, or the largest where they are nearly equal."""
    smallest, largest = min(types.values()), max(types.values())
    return largest if largest < 1.5 * smallest else smallest


def needed_bytes(types: Counter[LayerType], element: float, length: int, batched: int) -> int:
    """KV for one request of `length` tokens while `batched` tokens are scheduled at once."""
    size = _groups(types)
    largest = max(kind.page(element) for kind in types)
    blocks = 0
    for kind, count in types.items():
        block = BLOCK * int(largest // kind.page(element))
        if kind.window is None:
            one = math.ceil(length / block)
        else:
            one = math.ceil(min(kind.window - 1 + batched, length) / block) + 1
        blocks += math.ceil(count / size) * one
    return int(blocks * size * largest)


def longest(types: Counter[LayerType], element: float, available: int, batched: int) -> int:
    """The largest max_model_len whose KV fits; 0 where not even one token does."""
    low, high = 0, 2**22
    while low < high:
        middle = (low + high + 1) // 2
        if needed_bytes(types, element, middle, batched) <= available:
            low = middle
        else:
            high = middle - 1
    return low
