"""Published models in sizes: what their headers and config.json say, without their files."""

from __future__ import annotations

import math
from typing import Any

from models.weights import TensorGroup, Weights

BYTES = {"BF16": 2, "F32": 4, "U8": 1, "F8_E4M3": 1}


def group(
    name: str, *shape: int, dtype: str = "BF16", layers: int = 0, each: int = 1
) -> TensorGroup:
    """One group; in `layers` layers from the first, `each` times, or outside of them."""
    return TensorGroup(
        name=name,
        dtype=dtype,
        shape=shape,
        bytes=math.prod(shape) * BYTES[dtype],
        count=max(1, layers) * each,
        layers=((0, layers - 1, each),) if layers else (),
    )


def dense(
    model_type: str,
    layers: int,
    hidden: int,
    intermediate: int,
    heads: int,
    kv_heads: int,
    vocabulary: int,
    head_dim: int = 128,
    **config: Any,
) -> Weights:
    """A model of Llama's shape."""
    layer = "model.layers.*"
    queries, kv = heads * head_dim, kv_heads * head_dim
    groups = [
        group("model.embed_tokens.weight", vocabulary, hidden),
        group("lm_head.weight", vocabulary, hidden),
        group("model.norm.weight", hidden),
        group(f"{layer}.self_attn.q_proj.weight", queries, hidden, layers=layers),
        group(f"{layer}.self_attn.k_proj.weight", kv, hidden, layers=layers),
        group(f"{layer}.self_attn.v_proj.weight", kv, hidden, layers=layers),
        group(f"{layer}.self_attn.o_proj.weight", hidden, queries, layers=layers),
        group(f"{layer}.mlp.gate_proj.weight", intermediate, hidden, layers=layers),
        group(f"{layer}.mlp.up_proj.weight", intermediate, hidden, layers=layers),
        group(f"{layer}.mlp.down_proj.weight", hidden, intermediate, layers=layers),
        group(f"{layer}.input_layernorm.weight", hidden, layers=layers),
    ]
    said = {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "vocab_size": vocabulary,
        "max_position_embeddings": 131_072,
        "tie_word_embeddings": False,
        **config,
    }
    return Weights(config=said, groups=tuple(groups))


LLAMA_3_1_8B = dense("llama", 32, 4096, 14_336, 32, 8, 128_256)
QWEN_2_5_32B = dense("qwen2", 64, 5120, 27_648, 40, 8, 152_064)
R1_DISTILL_QWEN_14B = dense("qwen2", 48, 5120, 13_824, 40, 8, 152_064)


def gpt_oss(layers: int, experts: int) -> Weights:
    """gpt-oss: experts in MXFP4, the rest in bf16."""
    hidden, inner, queries, kv = 2880, 2880, 4096, 512
    layer, packed = "model.layers.*", {"dtype": "U8", "layers": layers}
    groups = [
        group("model.embed_tokens.weight", 201_088, hidden),
        group("lm_head.weight", 201_088, hidden),
        group(f"{layer}.self_attn.q_proj.weight", queries, hidden, layers=layers),
        group(f"{layer}.self_attn.k_proj.weight", kv, hidden, layers=layers),
        group(f"{layer}.self_attn.v_proj.weight", kv, hidden, layers=layers),
        group(f"{layer}.self_attn.o_proj.weight", hidden, queries, layers=layers),
        group(f"{layer}.self_attn.sinks", 64, layers=layers),
        group(f"{layer}.mlp.router.weight", experts, hidden, layers=layers),
    ]
    for name, rows in (("gate_up_proj", 2 * inner), ("down_proj", hidden)):
        base = f"{layer}.mlp.experts.{name}"
        groups += [
            group(f"{base}_blocks", experts, rows, 90, 16, **packed),  # type: ignore[arg-type]
            group(f"{base}_scales", experts, rows, 90, **packed),  # type: ignore[arg-type]
            group(f"{base}_bias", experts, rows, layers=layers),
        ]
    config = {
        "model_type": "gpt_oss",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "sliding_window": 128,
        "vocab_size": 201_088,
        "num_local_experts": experts,
        "num_experts_per_tok": 4,
        "max_position_embeddings": 131_072,
        "tie_word_embeddings": False,
        "layer_types": ["sliding_attention", "full_attention"] * (layers // 2),
        "quantization_config": {"quant_method": "mxfp4"},
    }
    return Weights(config=config, groups=tuple(groups))


def config_only(**config: Any) -> Weights:
    """A model of which only the KV cache is asked."""
    return Weights(config={"vocab_size": 32_000, "intermediate_size": 0, **config})


def layer_types(layers: int, every: int, other: str) -> list[str]:
    """One full layer in `every`, the last of them."""
    return ["full_attention" if (i + 1) % every == 0 else other for i in range(layers)]


QWEN_3_235B = config_only(
    model_type="qwen3_moe",
    num_hidden_layers=94,
    hidden_size=4096,
    num_attention_heads=64,
    num_key_value_heads=4,
    head_dim=128,
)
DEEPSEEK_V2_LITE = config_only(
    model_type="deepseek_v2",
    num_hidden_layers=27,
    hidden_size=2048,
    num_attention_heads=16,
    kv_lora_rank=512,
    qk_rope_head_dim=64,
    qk_nope_head_dim=128,
    v_head_dim=128,
)
GEMMA_4_26B_A4B = config_only(
    model_type="gemma4",
    text_config={
        "model_type": "gemma4_text",
        "num_hidden_layers": 30,
        "hidden_size": 2816,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 2,
        "attention_k_eq_v": True,
        "head_dim": 256,
        "global_head_dim": 512,
        "sliding_window": 1024,
        "vocab_size": 262_144,
        "layer_types": layer_types(30, 6, "sliding_attention"),
    },
)


def qwen_3_5(layers: int, heads: int, kv_heads: int, value_heads: int) -> Weights:
    """Qwen 3.5 to 3.8: one layer in four of full attention, gated delta nets between."""
    return config_only(
        model_type="qwen3_5",
        text_config={
            "model_type": "qwen3_5_text",
            "num_hidden_layers": layers,
            "hidden_size": 5120,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": 256,
            "vocab_size": 248_320,
            "layer_types": layer_types(layers, 4, "linear_attention"),
            "linear_num_key_heads": 16,
            "linear_num_value_heads": value_heads,
            "linear_key_head_dim": 128,
            "linear_value_head_dim": 128,
            "linear_conv_kernel_dim": 4,
            "mamba_ssm_dtype": "float32",
        },
    )
