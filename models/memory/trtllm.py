"""What of TensorRT-LLM's arguments changes memory, by the names of vLLM that the plan goes by."""

from __future__ import annotations

from collections.abc import Mapping

BLOCK = 32
"""Tokens in a block of the KV cache (`KvCacheConfig.tokens_per_block`)."""
MAX_NUM_TOKENS = 8192
"""Tokens of one step where nobody says (`TorchLlmArgs.max_num_tokens`)."""


def by_vllms_names(args: Mapping[str, object]) -> dict[str, object]:
    """The arguments of a load by TensorRT-LLM, with what its names mean under vLLM's.

    Not `max_batch_size`: its default of 2048 is a bound, where vLLM's is what a trial run fills.
    """
    kv_cache = args.get("kv_cache_config")
    told = kv_cache if isinstance(kv_cache, Mapping) else {}
    found: dict[str, object] = {
        **args,
        "block_size": told.get("tokens_per_block", BLOCK),
        "max_num_batched_tokens": args.get("max_num_tokens", MAX_NUM_TOKENS),
    }
    if told.get("dtype", "auto") != "auto":
        found["kv_cache_dtype"] = told["dtype"]
    if windows := told.get("max_attention_window"):
        found["max_attention_window"] = str(windows)
    return {name: value for name, value in found.items() if name != "kv_cache_config"}
