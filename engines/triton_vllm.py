"""Triton's vLLM backend (vllm_backend's `src/model.py`, read at 26.01; run in the sandbox)."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from engines.protocol import Request, Sampling
from engines.triton_native import TritonNative


class TritonVllm(TritonNative):
    """vLLM's sampling names in one JSON text, because a request's own parameters carry no lists."""

    name = "triton-vllm"
    carries = frozenset(each.name for each in fields(Sampling))

    def body(self, request: Request, sampling: dict[str, Any], *, stream: bool) -> dict[str, Any]:
        return {
            "text_input": request.prompt,
            "stream": stream,
            "sampling_parameters": json.dumps(sampling),
            # Else a whole answer begins with the prompt.
            "exclude_input_in_output": True,
            "return_finish_reason": True,
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
        }
