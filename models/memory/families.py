"""Which `model_type` of config.json keeps what; one that is not here is unknown, not guessed.

From the model files of vLLM 0.17.1 to 0.33.0 and the config classes of transformers 5.23.
"""

from __future__ import annotations

# Full attention in every layer, or as `layer_types` says.
# fmt: off
PLAIN = frozenset((
    "arcee", "aquila", "command-r", "cohere", "cohere2", "ernie4_5", "ernie4_5_moe", "exaone",
    "exaone4", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n_text", "gemma4_text", "glm",
    "glm4", "glm4_moe", "gpt_oss", "granite", "granitemoe", "helium", "internlm2", "internlm3",
    "llama", "llama4_text", "mistral", "mixtral", "ministral", "ministral3", "nemotron", "olmo",
    "olmo2", "olmo3", "olmoe", "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen2_vl",
    "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3", "qwen3_moe", "qwen3_vl_text",
    "qwen3_vl_moe_text", "seed_oss", "smollm3", "solar", "stablelm", "starcoder2",
))
# fmt: on
# `sliding_window` is a window on every layer where no `layer_types` says otherwise.
WINDOWED_THROUGHOUT = frozenset({"mistral", "mixtral", "ministral", "phi3", "phimoe", "starcoder2"})
# `sliding_window` counts only where `use_sliding_window` is true, from `max_window_layers` on.
# fmt: off
WINDOWED_IF_SAID = frozenset((
    "qwen2", "qwen2_moe", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3",
    "qwen3_moe",
))
# fmt: on
# One full layer in so many, the last of them; the others have a window.
FULL_EVERY = {"gemma3": 6, "gemma3_text": 6, "gemma3n_text": 5, "cohere2": 4}
# The even layers have a window, the odd ones are full.
ALTERNATING = frozenset({"gemma2", "gpt_oss"})
LATENT = frozenset({"deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite"})
LINEAR = frozenset({"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"})
MAMBA = frozenset({"nemotron_h"})

# Written only where they differ from these (transformers' own defaults).
DEFAULTS: dict[str, dict[str, int | bool]] = {
    "gemma2": {"sliding_window": 4096, "head_dim": 256, "tie_word_embeddings": True},
    "gemma": {"head_dim": 256, "tie_word_embeddings": True},
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "sliding_window": 4096,
        "vocab_size": 262_208,
        "tie_word_embeddings": True,
    },
    "gemma3n_text": {"tie_word_embeddings": True, "sliding_window": 512, "head_dim": 256},
    "gemma4_text": {"tie_word_embeddings": True, "head_dim": 256, "global_head_dim": 512},
    "gpt_oss": {"sliding_window": 128, "head_dim": 64},
    "cohere": {"tie_word_embeddings": True},
    "cohere2": {"tie_word_embeddings": True, "sliding_window": 4096},
    "qwen3": {"head_dim": 128},
    "qwen3_moe": {"head_dim": 128},
}
UNKNOWN_BECAUSE = {
    "deepseek_v32": "its sparse attention keeps an indexer's cache beside the latent one",
    "deepseek_v4": "it mixes latent pages of several sizes",
    "glm_moe_dsa": "its sparse attention keeps an indexer's cache beside the latent one",
    "kimi_linear": "it mixes latent attention and linear layers",
    "jamba": "its Mamba 1 states are not in the arithmetic",
    "mllama": "it has cross attention",
    "whisper": "it has cross attention",
}
