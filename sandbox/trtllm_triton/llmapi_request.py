"""The LLM-API model's tensors: `sampling_param_*` in, the whole text so far out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np  # type: ignore[import-not-found,unused-ignore]
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from sandbox.serving.steps import Generation
from sandbox.vllm_standin import sampling
from sandbox.vllm_standin.sampling import Sampling

DEFAULT_TOKENS = 32
"""The LLM API's own."""
_PREFIX = "sampling_param_"
_TO_ENGINE = (
    *("temperature", "top_k", "top_p", "frequency_penalty", "presence_penalty", "seed"),
    "max_tokens",
)


def _value(request: Any, name: str) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    if tensor is None:
        return None
    value = tensor.as_numpy().flatten()[0]
    return value.decode() if isinstance(value, bytes) else value.item()


@dataclass
class Request:
    """What was asked."""

    id: str
    prompt: str
    streaming: bool
    stop: bool
    exclude_input: bool
    reasons: bool
    stop_reasons: bool
    logprobs: bool
    sampling: Sampling

    @staticmethod
    def read(raw: Any) -> Request:
        """
        Raises:
            ValueError: a sampling parameter that cannot be.
        """
        given = {name: _value(raw, _PREFIX + name) for name in _TO_ENGINE}
        told = {name: value for name, value in given.items() if value is not None}
        stop = _value(raw, f"{_PREFIX}stop")
        told |= {
            "max_tokens": given["max_tokens"] or DEFAULT_TOKENS,
            "stop": [stop] if stop else [],
        }
        said: list[str] = []
        wanted = sampling.parse(json.dumps(told), said.append)
        if wanted is None:
            raise ValueError(said[0].partition("exception: ")[2])
        exclude = _value(raw, f"{_PREFIX}exclude_input_from_output")
        return Request(
            id=raw.request_id(),
            prompt=str(_value(raw, "text_input") or ""),
            streaming=bool(_value(raw, "streaming")),
            stop=bool(_value(raw, "stop")),
            exclude_input=exclude is None or bool(exclude),
            reasons=bool(_value(raw, "return_finish_reason")),
            stop_reasons=bool(_value(raw, "return_stop_reason")),
            logprobs=bool(_value(raw, "return_cumulative_logprob")),
            sampling=wanted,
        )


def response(request: Request, generation: Generation, batched: bool) -> Any:
    """All that was said so far, not what is new."""
    start = "" if request.exclude_input else request.prompt
    texts = [start + output.text for output in generation.outputs]
    tensors = [_strings("text_output", texts, batched)]
    if request.reasons:
        reasons = [str(output.finish_reason) for output in generation.outputs]
        tensors.append(_strings("finish_reason", reasons, batched))
    if request.stop_reasons:
        tensors.append(_strings("stop_reason", ["None"] * len(texts), batched))
    if request.logprobs:
        values = np.asarray([-0.5 * o.tokens for o in generation.outputs], dtype=np.float32)
        tensors.append(pb_utils.Tensor("cumulative_logprob", _shaped(values, batched)))
    return pb_utils.InferenceResponse(output_tensors=tensors)


def _shaped(values: Any, batched: bool) -> Any:
    return values[np.newaxis, :] if batched else values


def _strings(name: str, values: list[str], batched: bool) -> Any:
    array = np.asarray([value.encode() for value in values], dtype=np.object_)
    return pb_utils.Tensor(name, _shaped(array, batched))
