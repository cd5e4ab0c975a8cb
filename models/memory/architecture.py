"""config.json → layers and what each keeps, or what is not understood about it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from models.memory import families
from models.memory.layers import Architecture, Attention, Latent, Layer, State, Unknown
from models.weights import Weights

LARGEST = 2**31  # no size in a config.json is larger; keeps nonsense from costing time


class _NotUnderstood(Exception):  # noqa: N818 (its words are the answer)
    """The reason, for a person."""


@lru_cache(maxsize=1024)
def architecture(weights: Weights) -> Architecture | Unknown:
    """The model that the weights' config.json describes; `Unknown` rather than a guess."""
    if weights.trouble:
        return Unknown("; ".join(weights.trouble[:3]))
    try:
        return _Config(weights.config).architecture()
    except _NotUnderstood as reason:
        return Unknown(str(reason))


class _Config:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        nested = next((config[k] for k in ("text_config", "llm_config") if k in config), None)
        self.text: Mapping[str, Any] = nested if isinstance(nested, Mapping) else config
        self.type = str(self.text.get("model_type") or config.get("model_type") or "")
        self.defaults = families.DEFAULTS.get(self.type, {})

    def get(self, key: str) -> Any:
        value = self.text.get(key)
        return self.defaults.get(key) if value is None else value

    def size(self, key: str, otherwise: int | None = None) -> int:
        """A whole number; `otherwise` where config.json does not say it."""
        value = self.get(key)
        if value is None and otherwise is not None:
            return otherwise
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST:
            said = "does not say" if value is None else f"says {value!r:.40} for"
            raise _NotUnderstood(f"config.json of model_type `{self.type}` {said} `{key}`")
        return value

    def flag(self, key: str) -> bool:
        value = self.get(key)
        # transformers 5 writes it at the top for models of several parts.
        if value is None and key == "tie_word_embeddings":
            value = self.config.get(key)
        return value is True

    def positive(self, key: str) -> int:
        value = self.size(key)
        if value == 0:
            raise _NotUnderstood(f"config.json of model_type `{self.type}` says 0 for `{key}`")
        return value

    def architecture(self) -> Architecture:
        layers = self.layers()
        hidden, heads = self.positive("hidden_size"), self.positive("num_attention_heads")
        intermediate = self.size("intermediate_size", 0)
        experts = next(
            (self.size(key) for key in _EXPERTS if isinstance(self.get(key), int)),
            0,
        )
        latent = any(isinstance(layer, Latent) for layer in layers)
        copied = self.size("qk_nope_head_dim", 0) + self.size("v_head_dim", 0) if latent else 0
        return Architecture(
            layers=layers,
            heads=heads,
            hidden=hidden,
            intermediate=intermediate,
            expert_intermediate=self.size("moe_intermediate_size", intermediate),
            experts=experts,
            experts_per_token=next(
                (self.size(key) for key in _TOP_K if isinstance(self.get(key), int)), 0
            ),
            vocabulary=self.positive("vocab_size"),
            context=self.size("max_position_embeddings", 0),
            tied=self.flag("tie_word_embeddings"),
            key_is_value=self.flag("attention_k_eq_v"),
            shares_kv_from=self.shares_from(len(layers)),
            latent_copy=self.size("kv_lora_rank", 0) * copied * heads if latent else 0,
            grouped=not any(isinstance(one, Attention) and one.chunk for one in layers),
        )

    def shares_from(self, count: int) -> int:
        return max(0, count - self.size("num_kv_shared_layers", 0))

    def layers(self) -> tuple[Layer, ...]:
        if self.type in families.MAMBA:
            return self.mamba()
        if self.type not in families.PLAIN | families.LINEAR | families.LATENT:
            why = families.UNKNOWN_BECAUSE.get(self.type)
            named = f"model_type `{self.type}`" if self.type else "no model_type in config.json"
            raise _NotUnderstood(
                f"{named}: {why or 'Berth does not know what its layers keep'}; "
                "its KV cache is not worked out"
            )
        count = self.positive("num_hidden_layers")
        if count > 10_000:
            raise _NotUnderstood(f"config.json says {count} layers")
        if self.type in families.LATENT:
            return (Latent(self.positive("kv_lora_rank") + self.size("qk_rope_head_dim")),) * count
        kinds = self.kinds(count)
        made = {kind: self.layer(kind, set(kinds)) for kind in set(kinds)}
        shared = self.shares_from(count)
        return tuple(made[kind] if i < shared else None for i, kind in enumerate(kinds))

    def kinds(self, count: int) -> list[str]:
        """Of each layer, in the words of `layer_types`."""
        said = self.get("layer_types")
        if isinstance(said, list):
            if len(said) != count:
                raise _NotUnderstood(f"layer_types has {len(said)} entries for {count} layers")
            return [str(kind) for kind in said]
        full, windowed = "full_attention", "sliding_attention"
        if self.type in families.LINEAR:
            every = self.size("full_attention_interval", 4) or 4
            return [full if (i + 1) % every == 0 else "linear_attention" for i in range(count)]
        if self.type == "llama4_text":
            return [full if (i + 1) % 4 == 0 else "chunked_attention" for i in range(count)]
        if self.type in families.ALTERNATING:
            return [full if i % 2 else windowed for i in range(count)]
        if self.type in families.FULL_EVERY:
            every = self.size("sliding_window_pattern", families.FULL_EVERY[self.type]) or 1
            return [full if (i + 1) % every == 0 else windowed for i in range(count)]
        if not self.get("sliding_window"):
            return [full] * count
        if self.type in families.WINDOWED_IF_SAID:
            first = self.size("max_window_layers", 0) if self.flag("use_sliding_window") else count
            return [full if i < first else windowed for i in range(count)]
        if self.type in families.WINDOWED_THROUGHOUT:
            return [windowed] * count
        raise _NotUnderstood(
            f"model_type `{self.type}` has a sliding_window, and no layer_types says where"
        )

    def layer(self, kind: str, kinds: set[str]) -> Layer:
        if kind == "linear_attention":
            return self.linear()
        if kind not in ("full_attention", "sliding_attention", "chunked_attention"):
            raise _NotUnderstood(f"layer type `{kind:.40}` of model_type `{self.type}`")
        query_heads = self.positive("num_attention_heads")
        heads = self.size("num_key_value_heads", query_heads) or query_heads
        dim = self.size("head_dim", 0) or self.size("attention_head_dim", 0)
        dim = dim or self.positive("hidden_size") // query_heads
        if kind == "full_attention" and self.type == "gemma4_text" and len(kinds) > 1:
            dim = self.size("global_head_dim", dim) or dim
            if self.flag("attention_k_eq_v"):
                heads = self.size("num_global_key_value_heads", heads) or heads
        if not dim:
            raise _NotUnderstood("config.json has more attention heads than hidden_size")
        window = self.positive("sliding_window") if kind == "sliding_attention" else None
        chunk = self.size("attention_chunk_size", 8192) if kind == "chunked_attention" else None
        return Attention(heads, dim, dim, window=window, chunk=chunk)

    def linear(self) -> State:
        """Gated delta net (vLLM, `mamba_utils.gated_delta_net_state_shape`)."""
        key_heads, key_dim = (
            self.positive(f"linear_{k}") for k in ("num_key_heads", "key_head_dim")
        )
        heads, dim = (self.positive(f"linear_{k}") for k in ("num_value_heads", "value_head_dim"))
        return State(
            channels=2 * key_heads * key_dim + heads * dim,
            group_channels=0,
            groups=0,
            kernel=self.size("linear_conv_kernel_dim", 4),
            recurrent=heads * key_dim * dim,
            recurrent_dtype=str(self.get("mamba_ssm_dtype") or "auto"),
        )

    def mamba(self) -> tuple[Layer, ...]:
        """Nemotron-H (vLLM, `mamba_utils.mamba2_state_shape`)."""
        pattern = self.get("hybrid_override_pattern") or self.get("layers_block_type")
        if not isinstance(pattern, (str, list)) or not 0 < len(pattern) < 10_000:
            raise _NotUnderstood(f"model_type `{self.type}` without hybrid_override_pattern")
        heads = self.positive("mamba_num_heads")
        dim, size = self.positive("mamba_head_dim"), self.positive("ssm_state_size")
        state = State(
            channels=heads * dim,
            group_channels=2 * size,
            groups=self.positive("n_groups"),
            kernel=self.size("conv_kernel", 4),
            recurrent=heads * dim * size,
            recurrent_dtype=str(self.get("mamba_ssm_cache_dtype") or "auto"),
        )
        attention = self.layer("full_attention", set())
        named: dict[str, Layer] = {"M": state, "*": attention, "-": None, "E": None}
        named |= {"mamba": state, "attention": attention, "mlp": None, "moe": None}
        unknown = sorted({str(kind) for kind in pattern} - named.keys())
        if unknown:
            raise _NotUnderstood(f"layer type `{unknown[0]:.40}` of model_type `{self.type}`")
        return tuple(named[str(kind)] for kind in pattern)


_EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts")
_TOP_K = ("num_experts_per_tok", "top_k_experts", "experts_per_token")
