"""Gemma 4's shapes.

Known: the text, vision and audio sizes are those of transformers' conversion script for the four
published variants (convert_gemma4_weights.py) and the defaults in configuration_gemma4.py.
Assumed: that published checkpoints still ship the k and v projections of layers that share their
KV (as Gemma 3n's do; vLLM drops them), and that towers are bf16.
"""

from __future__ import annotations

from dataclasses import dataclass

VOCABULARY = 262_144
HEAD_DIM = 256
GLOBAL_HEAD_DIM = 512
PER_LAYER_INPUT = 256


@dataclass(frozen=True)
class Vision:
    hidden: int
    intermediate: int
    layers: int
    heads: int
    head_dim: int
    clipped: bool
    standardize: bool
    position_embeddings: int = 10_240
    patch: int = 16


@dataclass(frozen=True)
class Audio:
    hidden: int = 1024
    layers: int = 12
    heads: int = 8
    kernel: int = 5
    output: int = 1536
    channels: tuple[int, int] = (128, 32)


@dataclass(frozen=True)
class Experts:
    count: int
    intermediate: int
    top_k: int


@dataclass(frozen=True)
class Gemma4:
    """One variant; `period` layers end in one of full attention, the others have a window."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    period: int
    window: int
    context: int
    vision: Vision
    global_kv_heads: int | None = None
    kv_shared_layers: int = 0
    per_layer_input: int = 0
    double_wide_mlp: bool = False
    audio: Audio | None = None
    experts: Experts | None = None
    nvfp4_mlp: bool = False

    def is_full(self, layer: int) -> bool:
        return (layer + 1) % self.period == 0

    def shares_kv(self, layer: int) -> bool:
        return layer >= self.layers - self.kv_shared_layers

    def head_dim(self, layer: int) -> int:
        return GLOBAL_HEAD_DIM if self.is_full(layer) else HEAD_DIM

    def kv_heads_of(self, layer: int) -> int:
        full = self.is_full(layer) and self.global_kv_heads
        return full or self.kv_heads

    def has_v(self, layer: int) -> bool:
        """Under `attention_k_eq_v` the full layers ship k_proj only."""
        return not (self.is_full(layer) and self.global_kv_heads)

    def intermediate_of(self, layer: int) -> int:
        return self.intermediate * (2 if self.double_wide_mlp and self.shares_kv(layer) else 1)


_SMALL_VISION = Vision(768, 3072, 16, 12, 64, clipped=True, standardize=False)
_LARGE_VISION = Vision(1152, 4304, 27, 16, 72, clipped=False, standardize=True)

E2B = Gemma4(
    hidden=1536,
    intermediate=6144,
    layers=35,
    heads=8,
    kv_heads=1,
    period=5,
    window=512,
    context=131_072,
    vision=_SMALL_VISION,
    kv_shared_layers=20,
    per_layer_input=PER_LAYER_INPUT,
    double_wide_mlp=True,
    audio=Audio(),
)
E4B = Gemma4(
    hidden=2560,
    intermediate=10_240,
    layers=42,
    heads=8,
    kv_heads=2,
    period=6,
    window=512,
    context=131_072,
    vision=_SMALL_VISION,
    kv_shared_layers=18,
    per_layer_input=PER_LAYER_INPUT,
    audio=Audio(),
)
A4B = Gemma4(
    hidden=2816,
    intermediate=2112,
    layers=30,
    heads=16,
    kv_heads=8,
    period=6,
    window=1024,
    context=262_144,
    vision=_LARGE_VISION,
    global_kv_heads=2,
    experts=Experts(count=128, intermediate=704, top_k=8),
)
B31 = Gemma4(
    hidden=5376,
    intermediate=21_504,
    layers=60,
    heads=32,
    kv_heads=16,
    period=6,
    window=1024,
    context=262_144,
    vision=_LARGE_VISION,
    global_kv_heads=4,
)
