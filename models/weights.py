"""What one weights directory holds, as `host/weights.py` reads it: headers in groups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field


class TensorGroup(BaseModel):
    """Tensors alike in name (but for numbers), dtype and shape."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)

    name: str
    """Name with every number as `*`: `model.layers.*.mlp.experts.*.down_proj.weight`."""
    dtype: str
    """As the safetensors header says it: `BF16`, `U8`, `F8_E4M3`."""
    shape: tuple[int, ...]
    """Shape of one tensor."""
    bytes: int = Field(ge=0)
    """Bytes of one tensor, by its data offsets."""
    count: int = Field(ge=1)
    """Number of tensors, in all layers together."""
    layers: tuple[tuple[int, int, int], ...] = ()
    """Runs of layers (first, last, tensors in each); empty where the name has no layer."""

    @property
    def total(self) -> int:
        """Bytes of all its tensors."""
        return self.bytes * self.count


class Weights(BaseModel):
    """One weights directory. Equal content is equal, and hashes cheaply after the first time."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)

    config: dict[str, Any] = {}
    """config.json, without its lists of labels and of modules."""
    quantization: dict[str, Any] = {}
    """`quantization` of ModelOpt's hf_quant_config.json."""
    groups: tuple[TensorGroup, ...] = ()
    """All tensors of all safetensors files."""
    files: int = 0
    """Number of safetensors files read."""
    trouble: tuple[str, ...] = ()
    """What is wrong with the directory, in a person's words; then nothing follows from the rest."""

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return sum(group.total for group in self.groups)

    @cached_property
    def digest(self) -> str:
        """Of the whole content: what a memory plan may be remembered by."""
        content = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @cached_property
    def _hash(self) -> int:
        return hash(self.digest)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's; what was worked out of the old content is not taken along."""
        copied = super().model_copy(update=update, deep=deep)
        for name in ("digest", "_hash"):
            copied.__dict__.pop(name, None)
        return copied

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Weights) and self.digest == other.digest)
