"""A Gemma 4 checkpoint's config.json, as transformers writes it."""

from __future__ import annotations

from typing import Any

from .gemma4 import GLOBAL_HEAD_DIM, HEAD_DIM, VOCABULARY, Gemma4

_NVFP4 = {
    "quant_method": "modelopt",
    "quant_algo": "NVFP4",
    "producer": {"name": "modelopt", "version": "0.37.0"},
    "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"},
    "config_groups": {
        "group_0": {
            "input_activations": {"dynamic": False, "num_bits": 4, "type": "float"},
            "weights": {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16},
            "targets": ["Linear"],
        }
    },
    "ignore": ["lm_head", "model.embed_vision*", "model.vision_tower*", "*.self_attn*"],
}
"""Attention stays bf16: only the MLP is quantised."""


def _text(model: Gemma4) -> dict[str, Any]:
    types = [
        "full_attention" if model.is_full(layer) else "sliding_attention"
        for layer in range(model.layers)
    ]
    text: dict[str, Any] = {
        "model_type": "gemma4_text",
        "dtype": "bfloat16",
        "vocab_size": VOCABULARY,
        "hidden_size": model.hidden,
        "intermediate_size": model.intermediate,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "num_global_key_value_heads": model.global_kv_heads,
        "head_dim": HEAD_DIM,
        "global_head_dim": GLOBAL_HEAD_DIM,
        "attention_k_eq_v": model.global_kv_heads is not None,
        "num_kv_shared_layers": model.kv_shared_layers,
        "hidden_size_per_layer_input": model.per_layer_input,
        "vocab_size_per_layer_input": VOCABULARY,
        "use_double_wide_mlp": model.double_wide_mlp,
        "layer_types": types,
        "sliding_window": model.window,
        "max_position_embeddings": model.context,
        "final_logit_softcapping": 30.0,
        "tie_word_embeddings": True,
        "enable_moe_block": model.experts is not None,
    }
    if model.experts:
        text["num_experts"] = model.experts.count
        text["moe_intermediate_size"] = model.experts.intermediate
        text["top_k_experts"] = model.experts.top_k
    return text


def config(model: Gemma4) -> dict[str, Any]:
    vision = model.vision
    whole: dict[str, Any] = {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": "gemma4",
        "dtype": "bfloat16",
        "transformers_version": "5.5.0",
        "tie_word_embeddings": True,
        "text_config": _text(model),
        "vision_config": {
            "model_type": "gemma4_vision",
            "hidden_size": vision.hidden,
            "intermediate_size": vision.intermediate,
            "num_hidden_layers": vision.layers,
            "num_attention_heads": vision.heads,
            "head_dim": vision.head_dim,
            "use_clipped_linears": vision.clipped,
            "standardize": vision.standardize,
        },
        "audio_config": None,
    }
    if model.audio:
        whole["audio_config"] = {
            "model_type": "gemma4_audio",
            "hidden_size": model.audio.hidden,
            "num_hidden_layers": model.audio.layers,
        }
    if model.nvfp4_mlp:
        whole["quantization_config"] = _NVFP4
    return whole
