"""A tensor as a safetensors header describes it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

BYTES = {
    **dict.fromkeys(("F64", "I64", "U64"), Fraction(8)),
    **dict.fromkeys(("F32", "I32", "U32"), Fraction(4)),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), Fraction(2)),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), Fraction(1)),
    "F4": Fraction(1, 2),
}
"""Bytes per element of each safetensors dtype."""


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str = "BF16"

    @property
    def bytes(self) -> int:
        return math.ceil(math.prod(self.shape) * BYTES[self.dtype])


Tensors = Iterator[Tensor]


def linear(name: str, out: int, into: int) -> Tensor:
    """A linear layer's weight, [out, in] as PyTorch keeps it."""
    return Tensor(f"{name}.weight", (out, into))


def norm(name: str, size: int) -> Tensor:
    return Tensor(f"{name}.weight", (size,))


def nvfp4_linear(name: str, out: int, into: int) -> Tensors:
    """The same layer as ModelOpt's NVFP4: two weights a byte, a scale for each 16: 0.5625 B."""
    yield Tensor(f"{name}.weight", (out, into // 2), "U8")
    yield Tensor(f"{name}.weight_scale", (out, into // 16), "F8_E4M3")
    yield Tensor(f"{name}.weight_scale_2", (), "F32")
    yield Tensor(f"{name}.input_scale", (), "F32")
