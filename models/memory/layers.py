"""What a layer keeps of the tokens it has seen, and the model around the layers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attention:
    """Keys and values of each token; with a window or chunk only of the last ones."""

    kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None
    """Tokens of a sliding window."""
    chunk: int | None = None
    """Tokens of a chunk (Llama 4)."""


@dataclass(frozen=True)
class Latent:
    """One compressed vector a token, the same on every GPU of a stage (MLA)."""

    width: int
    """Elements: kv_lora_rank + qk_rope_head_dim."""


@dataclass(frozen=True)
class State:
    """A state of constant size, whatever the length (Mamba 2, gated delta net)."""

    channels: int
    """Channels of the convolution that are divided among GPUs."""
    group_channels: int
    """Channels per group; `groups` not divisible by tp are raised to tp."""
    groups: int
    kernel: int
    """Width of the convolution; one row less is kept."""
    recurrent: int
    """Elements of the recurrent state, divided among GPUs."""
    recurrent_dtype: str
    """Its type; `auto`: the model's."""


Layer = Attention | Latent | State | None
"""None: keeps nothing (an MLP, or another layer's KV is used)."""


@dataclass(frozen=True)
class Architecture:
    """A model as its config.json describes it. Sizes in elements."""

    layers: tuple[Layer, ...]
    heads: int
    hidden: int
    intermediate: int
    """Of the dense MLP; 0 where there is none."""
    expert_intermediate: int
    experts: int
    experts_per_token: int
    vocabulary: int
    context: int
    """Longest context that config.json allows, in tokens; 0 where it does not say."""
    tied: bool
    """Whether lm_head is the embedding."""
    key_is_value: bool
    """Full attention layers ship k_proj only, and it is loaded into both (Gemma 4)."""
    shares_kv_from: int
    """Layers from this one on use another layer's KV; their k and v tensors are dropped."""
    latent_copy: int
    """Elements of the second copy of kv_b_proj that MLA keeps in each layer, all heads."""
    grouped: bool
    """Whether layers of different kinds get pools of their own (not so for Llama 4)."""


@dataclass(frozen=True)
class Unknown:
    """What is not understood, and so nothing is worked out."""

    reason: str
