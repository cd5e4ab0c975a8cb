"""Weights per GPU: which tensors are divided, repeated, whole or not loaded at all.

vLLM's parallel layers, `model_executor/layers/linear.py` and `vocab_parallel_embedding.py`. What is
not recognised counts whole on each GPU of its stage: an upper bound, and said when it is large.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from models.memory.asked import Asked
from models.memory.layers import Architecture, Attention, Latent
from models.memory.resident import resident_bytes
from models.memory.stages import stages
from models.weights import TensorGroup, Weights

_TOWER = re.compile(
    r"(^|\.)(vision\w*|visual|audio\w*|image\w*|embed_vision|embed_audio|multi_modal\w*|mm_\w+|vit"
    r"|patch_merger|mlp1|speech\w*)(\.|$)"
)
_DRAFT = re.compile(r"(^|\.)(mtp\w*|eagle\w*|nextn\w*)\.")
_NEVER_LOADED = re.compile(r"(inv_freq|rotary_emb\.\w+|masked_bias)$")
_WHOLE = re.compile(
    r"norm|layer_scalar|(^|\.)ln_\w+|\.router\.|shared_expert_gate|\.(mlp|block_sparse_moe|mixer|ffn)"
    r"\.gate\.|e_score_correction_bias|\.q_a_proj|\.kv_a_proj|[kvq]_scale$|input_scale$|weight_scale_2$"
    r"|global_scale$|weight_shape$|per_layer_input_gate|per_layer_projection|\.(altup|laurel)\."
    r"|(o_proj|down_proj|dense_4h_to_h|wo|w2|out_proj|c_proj)\.bias$"
)
_KEYS_VALUES = re.compile(r"\.(k_proj|v_proj|k_proj_\w+|wk|wv)(\.|$)")
_FUSED_QKV = re.compile(r"\.(qkv_proj|wqkv|query_key_value|c_attn|W_pack)(\.|$)")
_EXPERTS = re.compile(r"\.experts(\.|_|$)")
_LINEAR = re.compile(
    r"\.(q_proj|o_proj|gate_proj|up_proj|down_proj|gate_up_proj|q_b_proj|kv_b_proj|in_proj\w*"
    r"|out_proj|x_proj|dt_proj|w1|w2|w3|wo|wq|fc1|fc2|c_fc|c_proj|dense\w*|per_layer_model_projection)"
    r"(\.|$)"
)
_DIVIDED = re.compile(r"\.(conv1d|A_log|dt_bias|D|sinks)(\.|$)")
_VOCABULARY = re.compile(r"(embed_tokens\w*|word_embeddings|wte|tok_embeddings|embeddings?)\.\w+$")
_HEAD = re.compile(r"(^|\.)(lm_head|embed_out|output)\.\w+$")
NOTEWORTHY = 64 * 2**20  # bytes


@dataclass(frozen=True)
class StageWeights:
    """Weights on one GPU of each stage, in bytes; and what was counted whole for want of a rule."""

    bytes: tuple[int, ...]
    notes: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def stage_weights(weights: Weights, architecture: Architecture, asked: Asked) -> StageWeights:
    """Resident weights of one GPU of each pipeline stage."""
    return _Sharding(weights, architecture, asked).stage_weights()


class _Sharding:
    def __init__(self, weights: Weights, architecture: Architecture, asked: Asked) -> None:
        self.weights, self.model, self.asked = weights, architecture, asked
        self.tensor = asked.tensor_parallel_size
        self.stages = stages(len(architecture.layers), asked.pipeline_parallel_size)
        names = [group.name for group in weights.groups]
        self.tied = architecture.tied or not any(_HEAD.search(name) for name in names)
        self.with_values = {
            layer
            for group in weights.groups
            if ".v_proj." in group.name and not _TOWER.search(group.name)
            for layer in _layers(group)
        }
        self.unknown: dict[str, int] = {}

    def stage_weights(self) -> StageWeights:
        totals = [Fraction(0)] * len(self.stages)
        for group in self.weights.groups:
            if self.is_loaded(group):
                for stage, number in enumerate(self.numbers(group)):
                    if number:
                        totals[stage] += Fraction(number) * self.share(group)
        for stage, layers in enumerate(self.stages):
            latent = sum(isinstance(self.model.layers[layer], Latent) for layer in layers)
            totals[stage] += Fraction(2 * latent * self.model.latent_copy, self.tensor)
        offloaded = 2**30 * (self.asked.number("cpu_offload_gb") or 0)
        whole = tuple(max(0, math.ceil(total) - offloaded) for total in totals)
        notes = [
            f"{name}: no rule for dividing it; counted whole on each GPU ({size // 2**20} MiB)"
            for name, size in sorted(self.unknown.items())
            if size >= NOTEWORTHY and self.tensor > 1
        ]
        return StageWeights(whole, tuple(notes))

    def is_loaded(self, group: TensorGroup) -> bool:
        name = group.name
        if _NEVER_LOADED.search(name):
            return False
        if _DRAFT.search(name):
            return bool(self.asked.engine_args.get("speculative_config"))
        if _TOWER.search(name):
            return not self.asked.flag("language_model_only")
        return not (self.tied and _HEAD.search(name))

    def numbers(self, group: TensorGroup) -> list[Fraction]:
        """Tensors of the group on each stage; a k_proj that is loaded as v too counts twice."""
        found = [Fraction(0)] * len(self.stages)
        if _TOWER.search(group.name) or _DRAFT.search(group.name) or not group.layers:
            for stage in self.outside_layers(group.name):
                found[stage] += group.count
            return found
        for stage, layers in enumerate(self.stages):
            for layer, number in _layers(group).items():
                if layer in layers:
                    found[stage] += number * self.times(group.name, layer)
        return found

    def outside_layers(self, name: str) -> tuple[int, ...]:
        """Stages of what is in no layer: the embedding first, norm and lm_head last."""
        last = len(self.stages) - 1
        if _TOWER.search(name):
            return (0,)
        if _VOCABULARY.search(name):
            return (0, last) if self.tied and last and "per_layer" not in name else (0,)
        return (last,)

    def times(self, name: str, layer: int) -> int:
        keys_values = _KEYS_VALUES.search(name)
        if layer >= self.model.shares_kv_from and (keys_values or ".k_norm" in name):
            return 0
        copied = self.model.key_is_value and layer not in self.with_values
        return 2 if copied and ".k_proj." in name else 1

    def share(self, group: TensorGroup) -> Fraction:
        """Bytes of one tensor on one GPU of its stage."""
        name = group.name
        tower = bool(_TOWER.search(name))
        linear = not tower and bool(
            _LINEAR.search(name)
            or _KEYS_VALUES.search(name)
            or _FUSED_QKV.search(name)
            or _EXPERTS.search(name)
        )
        quantisable = linear and not _WHOLE.search(name)
        size = Fraction(resident_bytes(group, self.model, self.asked, self.weights, quantisable))
        return size * self.part(group, tower)

    def part(self, group: TensorGroup, tower: bool) -> Fraction:
        """The part of a tensor that one GPU of the stage holds."""
        name, tensor = group.name, self.tensor
        if tower or _WHOLE.search(name):
            return Fraction(1)
        if _EXPERTS.search(name):
            experts = self.model.experts
            if self.asked.flag("enable_expert_parallel") and experts:
                return Fraction(math.ceil(experts / tensor), experts)
            return Fraction(1, tensor)
        if _KEYS_VALUES.search(name):
            return self.kv_part(group)
        if _FUSED_QKV.search(name):
            heads, kv = self.model.heads, self.kv_heads(group)
            return Fraction(heads + 2 * kv * self.repeat(kv), (heads + 2 * kv) * tensor)
        if _VOCABULARY.search(name) or _HEAD.search(name):
            rows = group.shape[0] if group.shape else 1
            return Fraction(math.ceil(rows / 64) * 64, max(1, rows) * tensor)
        if _LINEAR.search(name) or _DIVIDED.search(name):
            return Fraction(1, tensor)
        self.unknown[name] = self.unknown.get(name, 0) + group.total
        return Fraction(1)

    def kv_part(self, group: TensorGroup) -> Fraction:
        return Fraction(self.repeat(self.kv_heads(group)), self.tensor)

    def kv_heads(self, group: TensorGroup) -> int:
        for layer in _layers(group):
            kept = self.model.layers[layer] if layer < len(self.model.layers) else None
            if isinstance(kept, Attention):
                return kept.kv_heads
        return self.model.heads

    def repeat(self, kv_heads: int) -> Fraction:
        """With more GPUs than KV heads, each head stands on several."""
        return max(Fraction(1), Fraction(self.tensor, kv_heads))


@lru_cache(maxsize=65536)
def _layers(group: TensorGroup) -> dict[int, int]:
    """Layer → number of the group's tensors in it."""
    return {
        layer: number
        for first, last, number in group.layers
        for layer in range(max(0, first), min(last, 100_000) + 1)
    }
