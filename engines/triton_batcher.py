"""TensorRT-LLM's inflight batcher in Triton: `ensemble` or `tensorrt_llm_bls` (read)."""

from __future__ import annotations

from typing import Any

from engines.protocol import Request
from engines.triton_native import TritonNative

UNSAID_MAX_TOKENS = 16
"""OpenAI's own for completions: `max_tokens` is a required input here."""


class TritonBatcher(TritonNative):
    """It compares stop words as tokens, so texts that begin inside a token are found here.

    It names no finish reason. bls with `accumulate_tokens` gives the whole text each time: leave it
    off, as it is when `fill_template` does not set it.
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
