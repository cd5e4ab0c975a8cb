"""Triton's OpenAI frontend before TensorRT-LLM's inflight batcher (`python/openai`, 26.09 dev)."""

from __future__ import annotations

from engines.triton_openai import TritonOpenai
from models.engine import part_name


class TritonOpenaiBatcher(TritonOpenai):
    """It lists the ensemble's parts too, which nobody is to call.

    Where the client goes, generation runs on here as well: the request that stops the batcher is
    one to a part of the ensemble (`triton_batcher.py`), and the frontend has no path for that.
    """

    name = "triton-openai-batcher"

    @property
    def computes(self) -> str:
        """The ensemble counts requests; tokens and cache are its part's."""
        return part_name(self._upstream.model, "tensorrt_llm")
