"""The arithmetic against logs that people published with their issues.

Each row names where it stands. Sizes in a log are rounded to 0.01 GiB, so what is worked out from
one may be off by that much. Weights: 2 %, as a log counts buffers too that are not in the files
(the rotary table, 32 MiB for Llama 3.1). KV cache: exact, but for the rounding.
"""

from __future__ import annotations

import math

import pytest

from models.memory import Asked
from models.memory.architecture import architecture
from models.memory.kv_cache import Pool, need_bytes, pool, scheduled_tokens
from models.memory.layers import Architecture
from models.memory.overhead import overhead_bytes
from models.memory.resident import kv_element_bytes
from models.memory.sharding import stage_weights
from models.weights import Weights
from tests.models.memory import published

GIB = 2**30


def understood(weights: Weights) -> Architecture:
    found = architecture(weights)
    assert isinstance(found, Architecture), found
    return found


def pool_of(weights: Weights, asked: Asked, sequences: int = 1) -> Pool:
    element = kv_element_bytes(weights, asked)
    assert element is not None
    return pool(understood(weights), asked, element, sequences)


@pytest.mark.parametrize(
    ("source", "weights", "tensor", "logged_gib"),
    [
        ("vllm#10517", published.LLAMA_3_1_8B, 1, 14.9888),
        ("vllm#15815", published.QWEN_2_5_32B, 2, 30.7098),
        ("vllm#13061", published.R1_DISTILL_QWEN_14B, 2, 13.9476),
        ("myoceane.fr ai-vllm-a100-gemma-4: gpt-oss-20b", published.gpt_oss(24, 32), 1, 13.72),
        ("vllm#23278: gpt-oss-120b", published.gpt_oss(36, 128), 1, 65.9651),
    ],
)
def test_weights_are_as_large_as_the_log_says(
    source: str, weights: Weights, tensor: int, logged_gib: float
) -> None:
    asked = Asked(4096, tensor_parallel_size=tensor)
    (found,) = stage_weights(weights, understood(weights), asked).bytes
    assert found / GIB == pytest.approx(logged_gib, rel=0.02), source


@pytest.mark.parametrize(
    ("source", "weights", "tensor", "pool_gib", "logged_tokens", "tolerance"),
    [
        ("vllm#10517, 20k", published.LLAMA_3_1_8B, 1, 3.81, 1952 * 16, 0.002),
        ("vllm#10517, 29k", published.LLAMA_3_1_8B, 1, 2.89, 23_648, 0.002),
        ("vllm#15815", published.QWEN_2_5_32B, 2, 7.71, 3947 * 16, 0.001),
        # The log's pool is one rank's; the smallest rank's decides, and is not in the log.
        ("vllm#21348", published.QWEN_3_235B, 4, 8.11, 178_880, 0.015),
    ],
)
def test_a_pool_holds_as_many_tokens_as_the_log_says(
    source: str,
    weights: Weights,
    tensor: int,
    pool_gib: float,
    logged_tokens: int,
    tolerance: float,
) -> None:
    made = pool_of(weights, Asked(4096, tensor_parallel_size=tensor, vllm="0.9.0"))
    whole = range(len(understood(weights).layers))
    tokens = pool_gib * GIB // made.block_bytes(whole) * 16
    assert tokens == pytest.approx(logged_tokens, rel=tolerance), source


@pytest.mark.parametrize(
    ("source", "weights", "release", "batched", "length", "needed_gib"),
    [
        ("vllm#15871", published.DEEPSEEK_V2_LITE, "0.8.3", 8192, 32_768, 0.95),
        # Its max_num_batched_tokens: that repository's compose file for this model.
        ("club-3090#334", published.GEMMA_4_26B_A4B, "0.22.0", 4096, 262_144, 5.98),
    ],
)
def test_a_request_needs_what_the_refusal_says(
    source: str, weights: Weights, release: str, batched: int, length: int, needed_gib: float
) -> None:
    asked = Asked(length, vllm=release)
    (needed,) = need_bytes(pool_of(weights, asked), understood(weights), asked, length, batched)
    assert needed / GIB == pytest.approx(needed_gib, abs=0.006), source


def test_the_longest_context_of_a_windowed_model_is_the_one_that_the_log_estimates() -> None:
    """club-3090#334: 1.82 GiB hold 44,224 tokens of Gemma 4 26B, and 5.98 GiB hold 262,144."""
    weights, asked = published.GEMMA_4_26B_A4B, Asked(44_224, vllm="0.22.0")
    made = pool_of(weights, asked)
    (needed,) = need_bytes(made, understood(weights), asked, 44_224, 4096)
    assert needed / GIB == pytest.approx(1.82, abs=0.006)


@pytest.mark.parametrize(
    ("source", "weights", "tensor", "pool_gib", "block", "tokens"),
    [
        # Qwen3.8 27B in FP8 on two 3090s; club-3090#1047 logs the same block on one A6000.
        ("talos-argocd-proxmox#1995", published.qwen_3_5(64, 24, 4, 48), 2, 4.99, 1568, 302_921),
        ("club-3090#612: Qwen3.6 35B", published.qwen_3_5(40, 16, 2, 32), 1, 5.98, 2096, 567_978),
    ],
)
def test_a_hybrid_has_the_block_and_the_tokens_that_the_log_says(
    source: str, weights: Weights, tensor: int, pool_gib: float, block: int, tokens: int
) -> None:
    """From 0.21 the log's tokens are concurrency × max_model_len: the last digit holds."""
    asked = Asked(
        131_072,
        tensor_parallel_size=tensor,
        engine_args={"kv_cache_dtype": "fp8", "enable_prefix_caching": True},
        vllm="0.24.0",
    )
    made = pool_of(weights, asked)
    assert block in {group.block for group in made.groups}, source
    whole = range(len(understood(weights).layers))
    blocks = pool_gib * GIB // made.block_bytes(whole)
    needed = made.blocks(131_072, scheduled_tokens(asked, 8192))
    assert math.floor(blocks / needed * 131_072) == tokens, source


@pytest.mark.parametrize(
    ("source", "weights", "tensor", "tokens", "logged_gib"),
    [
        # Outside torch, and torch's peak less the weights.
        ("vllm#10517, 20k", published.LLAMA_3_1_8B, 1, 20_000, 0.35 + 2.07),
        ("vllm#10517, 29k", published.LLAMA_3_1_8B, 1, 29_000, 0.35 + 2.99),
        ("vllm#15815", published.QWEN_2_5_32B, 2, 10_000, 0.30 + 1.26),
        # 0.65 of an A100's 79.25 GiB, less 13.72 of weights and a pool of 36.56.
        ("myoceane.fr: gpt-oss-20b", published.gpt_oss(24, 32), 1, 2048, 1.23),
    ],
)
def test_the_overhead_is_not_less_than_logged_and_little_more(
    source: str, weights: Weights, tensor: int, tokens: int, logged_gib: float
) -> None:
    asked = Asked(4096, tensor_parallel_size=tensor)
    found = overhead_bytes(understood(weights), asked, 4096, tokens, 256) / GIB
    assert logged_gib <= found <= logged_gib + 0.2, source
