"""What a tensor of a checkpoint is once it is loaded: casts, quantising, padding."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from models.memory.asked import Asked
from models.memory.layers import Architecture
from models.weights import TensorGroup, Weights

_WIDTHS = {"float32": 4.0, "float": 4.0, "bfloat16": 2.0, "float16": 2.0, "half": 2.0}
_FLOATS = {"F32": 4.0, "F16": 2.0, "BF16": 2.0}
_SCALES = ("scale", "scale_inv", "zeros", "absmax", "quant_map", "A_log", "dt_bias", ".D")


def dtype_bytes(asked: Asked) -> float:
    """Bytes of one element that is not quantised. `auto` serves a float32 checkpoint in 16 bit."""
    if asked.dtype != "auto":
        return _WIDTHS.get(asked.dtype, 2.0)
    return 2.0


def quantised(weights: Weights) -> dict[str, Any]:
    """What the checkpoint says of its quantisation; empty where it is not quantised."""
    found = weights.config.get("quantization_config") or weights.quantization
    return found if isinstance(found, dict) else {}


def resident_bytes(
    group: TensorGroup, architecture: Architecture, asked: Asked, weights: Weights, linear: bool
) -> float:
    """Bytes of one tensor of the group when it is loaded, all GPUs together.

    Args:
        linear: whether it belongs to a linear layer or to experts, which `--quantization fp8`
            halves when the checkpoint is not quantised.
    """
    stored = _FLOATS.get(group.dtype)
    if stored is None or group.name.endswith(_SCALES):
        return group.bytes * _mxfp4_padding(group, architecture, asked, weights)
    size = group.bytes * dtype_bytes(asked) / stored
    on_load = asked.quantization == "fp8" and not quantised(weights)
    if on_load and linear and len(group.shape) >= 2:
        return group.bytes / stored
    return size


def _mxfp4_padding(
    group: TensorGroup, architecture: Architecture, asked: Asked, weights: Weights
) -> float:
    """gpt-oss before Blackwell: Marlin pads a GPU's part of the experts to 128, hidden to 256."""
    if not group.name.endswith(("_blocks", "_scales")) or ".experts" not in group.name:
        return 1.0
    if str(quantised(weights).get("quant_method", "")) != "mxfp4":
        return 1.0
    experts_split = 1 if asked.flag("enable_expert_parallel") else asked.tensor_parallel_size
    inner = architecture.expert_intermediate / experts_split
    if inner <= 0:
        return 1.0
    padded = math.ceil(inner / 128) * 128 * math.ceil(architecture.hidden / 256) * 256
    return padded / (inner * architecture.hidden)


@lru_cache(maxsize=4096)
def kv_element_bytes(weights: Weights, asked: Asked) -> float | None:
    """Bytes of one element of the KV cache; None for a kv_cache_dtype that is not known.

    `auto` is the model's type, or fp8 where the checkpoint says that its KV cache is (ModelOpt,
    compressed-tensors).
    """
    said = asked.text("kv_cache_dtype") or "auto"
    if said == "auto":
        found = quantised(weights)
        scheme = found.get("kv_cache_scheme")
        names = (found.get("kv_cache_quant_algo"), weights.quantization.get("kv_cache_quant_algo"))
        if any(str(name).upper() == "FP8" for name in names):
            return 1.0
        if isinstance(scheme, dict) and scheme.get("num_bits") == 8:
            return 1.0
        return dtype_bytes(asked)
    if said in ("fp8", "fp8_e4m3", "fp8_e5m2"):
        return 1.0
    if said == "nvfp4":
        return 0.5625
    return _WIDTHS.get(said)
