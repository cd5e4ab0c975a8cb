"""TensorRT-LLM's LLM-API model in Triton (`triton_backend/all_models/llmapi`, read)."""

from __future__ import annotations

from typing import Any

from engines.failure import broken
from engines.protocol import Request
from engines.triton_native import TritonNative


class TritonLlmapi(TritonNative):
    """Its text is the whole answer so far, and it counts no tokens.

    Streaming needs `decoupled: true` under `triton_config` in the entry's model.yaml; as shipped it
    is false, and the model says so.
    """

    name = "triton-llmapi"
    carries = frozenset(
        {
            "max_tokens",
            "temperature",
            "top_k",
            "top_p",
            "frequency_penalty",
            "presence_penalty",
            "seed",
            "stop",
        }
    )

    def body(self, request: Request, sampling: dict[str, Any], *, stream: bool) -> dict[str, Any]:
        if stop := sampling.get("stop"):
            # One text or several, by version: one fits both, the others are found here.
            sampling["stop"] = stop[0]
        return {
            "text_input": request.prompt,
            "streaming": stream,
            **{f"sampling_param_{name}": value for name, value in sampling.items()},
            "sampling_param_exclude_input_from_output": True,
            "return_finish_reason": True,
        }

    def growth(self, said: str, before: str) -> tuple[str, int]:
        """The text's growth. An unfinished character shows as U+FFFD and becomes another one; a
        stop sequence that the engine found is taken out of the text with its last response."""
        settled = said.rstrip("\ufffd")
        if settled.startswith(before):
            return settled[len(before) :], 0
        if before.startswith(settled):
            return "", len(before) - len(settled)
        raise broken("the engine changed text that it had already given")
