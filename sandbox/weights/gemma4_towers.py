"""The vision and audio towers' tensors of a Gemma 4 checkpoint, and their projections."""

from __future__ import annotations

from .gemma4 import Audio, Gemma4, Vision
from .tensors import Tensor, Tensors, linear, norm


def _clippable(name: str, out: int, into: int, clipped: bool) -> Tensors:
    yield linear(f"{name}.linear", out, into)
    if clipped:
        for bound in ("input_min", "input_max", "output_min", "output_max"):
            yield Tensor(f"{name}.{bound}", ())


def _vision(vision: Vision) -> Tensors:
    name, hidden, width = "model.vision_tower", vision.hidden, vision.heads * vision.head_dim
    yield linear(f"{name}.patch_embedder.input_proj", hidden, 3 * vision.patch**2)
    positions = (2, vision.position_embeddings, hidden)
    yield Tensor(f"{name}.patch_embedder.position_embedding_table", positions)
    for layer in range(vision.layers):
        base = f"{name}.encoder.layers.{layer}"
        for projection in ("q_proj", "k_proj", "v_proj"):
            yield from _clippable(f"{base}.self_attn.{projection}", width, hidden, vision.clipped)
        yield from _clippable(f"{base}.self_attn.o_proj", hidden, width, vision.clipped)
        for projection in ("gate_proj", "up_proj"):
            wide = vision.intermediate
            yield from _clippable(f"{base}.mlp.{projection}", wide, hidden, vision.clipped)
        yield from _clippable(f"{base}.mlp.down_proj", hidden, vision.intermediate, vision.clipped)
        for suffix in (
            *("input_layernorm", "post_attention_layernorm"),
            *("pre_feedforward_layernorm", "post_feedforward_layernorm"),
        ):
            yield norm(f"{base}.{suffix}", hidden)
        yield norm(f"{base}.self_attn.q_norm", vision.head_dim)
        yield norm(f"{base}.self_attn.k_norm", vision.head_dim)
    if vision.standardize:
        yield Tensor(f"{name}.std_bias", (hidden,))
        yield Tensor(f"{name}.std_scale", (hidden,))


def _audio_layer(audio: Audio, base: str) -> Tensors:
    hidden = audio.hidden
    for block in ("feed_forward1", "feed_forward2"):
        yield from _clippable(f"{base}.{block}.ffw_layer_1", 4 * hidden, hidden, True)
        yield from _clippable(f"{base}.{block}.ffw_layer_2", hidden, 4 * hidden, True)
        yield norm(f"{base}.{block}.pre_layer_norm", hidden)
        yield norm(f"{base}.{block}.post_layer_norm", hidden)
    for projection in ("q_proj", "k_proj", "v_proj", "post"):
        yield from _clippable(f"{base}.self_attn.{projection}", hidden, hidden, True)
    yield linear(f"{base}.self_attn.relative_k_proj", hidden, hidden)
    yield Tensor(f"{base}.self_attn.per_dim_scale", (hidden // audio.heads,))
    yield from _clippable(f"{base}.lconv1d.linear_start", 2 * hidden, hidden, True)
    yield from _clippable(f"{base}.lconv1d.linear_end", hidden, hidden, True)
    yield Tensor(f"{base}.lconv1d.depthwise_conv1d.weight", (hidden, 1, audio.kernel))
    for suffix in ("lconv1d.pre_layer_norm", "lconv1d.conv_norm"):
        yield norm(f"{base}.{suffix}", hidden)
    for suffix in ("norm_pre_attn", "norm_post_attn", "norm_out"):
        yield norm(f"{base}.{suffix}", hidden)


def _audio(audio: Audio) -> Tensors:
    name, (first, second) = "model.audio_tower", audio.channels
    sub = f"{name}.subsample_conv_projection"
    yield Tensor(f"{sub}.layer0.conv.weight", (first, 1, 3, 3))
    yield norm(f"{sub}.layer0.norm", first)
    yield Tensor(f"{sub}.layer1.conv.weight", (second, first, 3, 3))
    yield norm(f"{sub}.layer1.norm", second)
    yield linear(f"{sub}.input_proj_linear", audio.hidden, second**2)
    for layer in range(audio.layers):
        yield from _audio_layer(audio, f"{name}.layers.{layer}")
    yield linear(f"{name}.output_proj", audio.output, audio.hidden)
    yield Tensor(f"{name}.output_proj.bias", (audio.output,))


def tower_tensors(model: Gemma4) -> Tensors:
    yield from _vision(model.vision)
    yield linear("model.embed_vision.embedding_projection", model.hidden, model.vision.hidden)
    if model.audio:
        yield from _audio(model.audio)
        yield linear("model.embed_audio.embedding_projection", model.hidden, model.audio.output)
