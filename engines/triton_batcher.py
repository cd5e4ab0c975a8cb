"""TensorRT-LLM's inflight batcher in Triton, by the ensemble in front of it (read)."""

from __future__ import annotations

from typing import Any

from engines.protocol import Request, Stops
from engines.triton_native import TritonNative
from models.engine import part_name

UNSAID_MAX_TOKENS = 16
"""OpenAI's own for completions: `max_tokens` is a required input here."""


class TritonBatcher(TritonNative):
    """It compares stop words as tokens, so texts that begin inside a token are found here.

    It names no finish reason. Triton looks for a client that has gone only between an ensemble's
    steps (server#6739), so the engine goes on to the answer's end. `tensorrt_llm_bls` with
    `accumulate_tokens` gives the whole text each time: leave it off where you put it in front.
    """

    name = "triton-batcher"
    carries = frozenset(
        {
            "max_tokens",
            "temperature",
            "top_k",
            "top_p",
            "repetition_penalty",
            "frequency_penalty",
            "presence_penalty",
            "seed",
            "stop",
        }
    )
    says_its_end = False
    stops = Stops.RUNS_ON

    @property
    def computes(self) -> str:
        """The ensemble counts requests; tokens and cache are its part's."""
        return part_name(self._upstream.model, "tensorrt_llm")

    def body(self, request: Request, sampling: dict[str, Any], *, stream: bool) -> dict[str, Any]:
        stop = sampling.pop("stop", None)
        return {
            "text_input": request.prompt,
            "max_tokens": UNSAID_MAX_TOKENS,
            "stream": stream,
            "exclude_input_in_output": True,
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
            **({"stop_words": stop} if stop else {}),
            **sampling,
        }
