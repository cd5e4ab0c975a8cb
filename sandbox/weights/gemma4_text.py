"""The language model's tensors of a Gemma 4 checkpoint."""

from __future__ import annotations

from .gemma4 import VOCABULARY, Experts, Gemma4
from .tensors import Tensor, Tensors, linear, norm, nvfp4_linear

PREFIX = "model.language_model"


def _attention(model: Gemma4, layer: int, name: str) -> Tensors:
    head_dim, kv = model.head_dim(layer), model.kv_heads_of(layer)
    yield linear(f"{name}.q_proj", model.heads * head_dim, model.hidden)
    yield linear(f"{name}.k_proj", kv * head_dim, model.hidden)
    if model.has_v(layer):
        yield linear(f"{name}.v_proj", kv * head_dim, model.hidden)
    yield linear(f"{name}.o_proj", model.hidden, model.heads * head_dim)
    yield norm(f"{name}.q_norm", head_dim)
    yield norm(f"{name}.k_norm", head_dim)


def _mlp(model: Gemma4, layer: int, name: str) -> Tensors:
    size = model.intermediate_of(layer)
    shapes = (
        (f"{name}.gate_proj", size, model.hidden),
        (f"{name}.up_proj", size, model.hidden),
        (f"{name}.down_proj", model.hidden, size),
    )
    for projection, out, into in shapes:
        if model.nvfp4_mlp:
            yield from nvfp4_linear(projection, out, into)
        else:
            yield linear(projection, out, into)


def _experts(model: Gemma4, experts: Experts, name: str) -> Tensors:
    hidden = model.hidden
    yield Tensor(f"{name}.experts.gate_up_proj", (experts.count, 2 * experts.intermediate, hidden))
    yield Tensor(f"{name}.experts.down_proj", (experts.count, hidden, experts.intermediate))
    yield linear(f"{name}.router.proj", experts.count, hidden)
    yield Tensor(f"{name}.router.scale", (hidden,))
    yield Tensor(f"{name}.router.per_expert_scale", (experts.count,))
    for suffix in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2"):
        yield norm(f"{name}.{suffix}", hidden)
    yield norm(f"{name}.pre_feedforward_layernorm_2", hidden)


def _layer(model: Gemma4, layer: int) -> Tensors:
    name = f"{PREFIX}.layers.{layer}"
    yield from _attention(model, layer, f"{name}.self_attn")
    yield from _mlp(model, layer, f"{name}.mlp")
    if model.experts:
        yield from _experts(model, model.experts, name)
    for suffix in (
        *("input_layernorm", "post_attention_layernorm"),
        *("pre_feedforward_layernorm", "post_feedforward_layernorm"),
    ):
        yield norm(f"{name}.{suffix}", model.hidden)
    yield Tensor(f"{name}.layer_scalar", (1,))
    if model.per_layer_input:
        yield linear(f"{name}.per_layer_input_gate", model.per_layer_input, model.hidden)
        yield linear(f"{name}.per_layer_projection", model.hidden, model.per_layer_input)
        yield norm(f"{name}.post_per_layer_input_norm", model.hidden)


def text_tensors(model: Gemma4) -> Tensors:
    """All of them; lm_head is tied to the embedding and not shipped."""
    yield Tensor(f"{PREFIX}.embed_tokens.weight", (VOCABULARY, model.hidden))
    if model.per_layer_input:
        width = model.layers * model.per_layer_input
        yield Tensor(f"{PREFIX}.embed_tokens_per_layer.weight", (VOCABULARY, width))
        yield linear(f"{PREFIX}.per_layer_model_projection", width, model.hidden)
        yield norm(f"{PREFIX}.per_layer_projection_norm", model.per_layer_input)
    for layer in range(model.layers):
        yield from _layer(model, layer)
    yield norm(f"{PREFIX}.norm", model.hidden)
