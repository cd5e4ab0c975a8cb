"""Small dense models to order, in the plainest layout: Llama's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .tensors import Tensor, Tensors, linear, norm


@dataclass(frozen=True)
class Llama:
    """Sizes of a dense decoder; weights are bf16."""

    layers: int = 4
    hidden: int = 512
    intermediate: int = 2048
    heads: int = 8
    kv_heads: int = 4
    head_dim: int = 64
    vocabulary: int = 32_000
    context: int = 8192
    tied: bool = field(default=False, kw_only=True)
    """Whether lm_head is the embedding, and so not in the files."""


LLAMA_1B = Llama(16, 2048, 8192, 32, 8, 64, 128_256, 131_072, tied=True)
"""The published sizes of Llama 3.2 1B: 1.24 billion parameters."""


def llama_tensors(model: Llama) -> Tensors:
    queries, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    yield Tensor("model.embed_tokens.weight", (model.vocabulary, model.hidden))
    for layer in range(model.layers):
        name = f"model.layers.{layer}"
        yield linear(f"{name}.self_attn.q_proj", queries, model.hidden)
        yield linear(f"{name}.self_attn.k_proj", kv, model.hidden)
        yield linear(f"{name}.self_attn.v_proj", kv, model.hidden)
        yield linear(f"{name}.self_attn.o_proj", model.hidden, queries)
        yield linear(f"{name}.mlp.gate_proj", model.intermediate, model.hidden)
        yield linear(f"{name}.mlp.up_proj", model.intermediate, model.hidden)
        yield linear(f"{name}.mlp.down_proj", model.hidden, model.intermediate)
        yield norm(f"{name}.input_layernorm", model.hidden)
        yield norm(f"{name}.post_attention_layernorm", model.hidden)
    yield norm("model.norm", model.hidden)
    if not model.tied:
        yield linear("lm_head", model.vocabulary, model.hidden)


def llama_config(model: Llama) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "vocab_size": model.vocabulary,
        "hidden_size": model.hidden,
        "intermediate_size": model.intermediate,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "max_position_embeddings": model.context,
        "tie_word_embeddings": model.tied,
    }


def from_spec(spec: str) -> tuple[str, Llama]:
    """`name:layers:hidden[:intermediate[:heads[:kv_heads[:head_dim[:vocabulary]]]]]`.

    >>> from_spec("tiny:2:256")[1].intermediate
    1024
    """
    name, *words = spec.split(":")
    try:
        numbers = [int(word) for word in words]
    except ValueError as error:
        raise ValueError(f"{spec!r}: sizes are whole numbers: name:layers:hidden:…") from error
    if not name or not 2 <= len(numbers) <= 7 or min(numbers) < 1:
        raise ValueError(f"{spec!r} is not name:layers:hidden[:intermediate[:heads[:…]]]")
    if len(numbers) == 2:
        numbers.append(4 * numbers[1])
    return name, Llama(*numbers)
