"""Engines: what can serve a model, and what the rest of Berth has to know of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Engine = Literal[
    "triton-vllm",
    "triton-llmapi",
    "triton-batcher",
    "triton-openai",
    "triton-openai-batcher",
    "vllm",
    "trtllm-serve",
]


@dataclass(frozen=True)
class EngineTraits:
    """How an engine differs from the others for a plan."""

    for_life: bool
    """Whether its server holds one model for life, under a unit named after its role. Otherwise a
    Triton instance loads and unloads the model."""
    entry: bool
    """Whether it runs from an entry in the model repository."""
    openai: bool
    """Whether it speaks OpenAI's API itself; before the others stands the adapter."""
    runs: Literal["vllm", "trtllm"]
    """What computes, so what of an image a model's architecture is asked of."""
    shares: bool = True
    """Whether it keeps to a budget beside others on a GPU (`shared_mib`)."""


BATCHER_PARTS = ("preprocessing", "tensorrt_llm", "postprocessing")
"""What the inflight batcher's ensemble is made of, in the order in which a request meets them."""


def part_name(entry: str, part: str) -> str:
    """Name of the repository entry of a model's part: Triton loads it with the model's own entry.

    No catalog model begins with `_`, so no model is taken for a part of another.

    >>> part_name("shop.gemma-4-31b-it", "tensorrt_llm")
    'shop._tensorrt_llm.gemma-4-31b-it'
    """
    demo, dot, model = entry.partition(".")
    return f"{demo}._{part}.{model}" if dot else f"_{part}.{entry}"


VLLM_ENTRY = ("triton-vllm", "triton-openai")
"""Engines that run from a repository entry of Triton's vLLM backend."""
BATCHER_ENTRY = ("triton-batcher", "triton-openai-batcher")
"""Engines that run from the entries of TensorRT-LLM's inflight batcher, on prebuilt engines."""
TRAITS: Mapping[str, EngineTraits] = {
    "triton-vllm": EngineTraits(for_life=False, entry=True, openai=False, runs="vllm"),
    "triton-llmapi": EngineTraits(
        for_life=False, entry=True, openai=False, runs="trtllm", shares=False
    ),
    "triton-batcher": EngineTraits(
        for_life=False, entry=True, openai=False, runs="trtllm", shares=False
    ),
    "triton-openai": EngineTraits(for_life=True, entry=True, openai=True, runs="vllm"),
    "triton-openai-batcher": EngineTraits(
        for_life=True, entry=True, openai=True, runs="trtllm", shares=False
    ),
    "vllm": EngineTraits(for_life=True, entry=False, openai=True, runs="vllm"),
    # Its KV cache is a share of what is free after the weights (`serve.py`), so that how much it
    # takes depends on who else is on the GPU.
    "trtllm-serve": EngineTraits(
        for_life=True, entry=False, openai=True, runs="trtllm", shares=False
    ),
}
"""Name in `engine:` → its traits."""
