"""A request's tensors in and responses out, as NVIDIA's backend reads and writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np  # type: ignore[import-not-found,unused-ignore]
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from . import answers

ASKED = ("finish_reason", "cumulative_logprob", "logprobs", "num_input_tokens", "num_output_tokens")
"""Outputs that come only when `return_<name>` asks for them."""


def _scalar(request: Any, name: str) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy()[0]


@dataclass
class Request:
    """What was asked, and how much of each output has been sent."""

    prompt: str
    stream: bool
    prepend: bool
    parameters: str
    asked: frozenset[str]
    _sent_text: list[int] = field(default_factory=list)
    _sent_tokens: list[int] = field(default_factory=list)

    @staticmethod
    def read(request: Any) -> Request:
        prompt = _scalar(request, "text_input")
        stream = bool(_scalar(request, "stream") or False)
        exclude = _scalar(request, "exclude_input_in_output")
        prepend = not stream if exclude is None else not exclude
        if prepend and stream:
            raise ValueError("When streaming, `exclude_input_in_output` = False is not allowed.")
        asked = {name for name in ASKED if _scalar(request, f"return_{name}")}
        text = prompt.decode() if isinstance(prompt, bytes) else str(prompt)
        return Request(text, stream, prepend, parameters(request), frozenset(asked))

    def response(self, sequences: Sequence[answers.Sequence]) -> Any:
        """Deltas since the last response; the prompt goes before the first where asked."""
        first = not self._sent_text
        before_text = self._sent_text or [0] * len(sequences)
        before_tokens = self._sent_tokens or [0] * len(sequences)
        prefix = self.prompt if first and self.prepend else ""
        texts = [
            (prefix + s.text[n:]).encode() for s, n in zip(sequences, before_text, strict=True)
        ]
        counts = [s.tokens - n for s, n in zip(sequences, before_tokens, strict=True)]
        self._sent_text = [len(s.text) for s in sequences]
        self._sent_tokens = [s.tokens for s in sequences]
        tensors = [_strings("text_output", texts)]
        if "finish_reason" in self.asked:
            reasons = [str(s.finish_reason).encode() for s in sequences]
            tensors.append(_strings("finish_reason", reasons))
        if "cumulative_logprob" in self.asked:
            values = np.asarray([-0.5 * s.tokens for s in sequences], dtype=np.float32)
            tensors.append(pb_utils.Tensor("cumulative_logprob", values))
        if "logprobs" in self.asked:
            tensors.append(_strings("logprobs", [b"null"] * len(sequences)))
        if "num_input_tokens" in self.asked:
            number = np.asarray([answers.tokens_of(self.prompt)], dtype=np.uint32)
            tensors.append(pb_utils.Tensor("num_input_tokens", number))
        if "num_output_tokens" in self.asked:
            numbers = np.asarray(counts, dtype=np.uint32)
            tensors.append(pb_utils.Tensor("num_output_tokens", numbers))
        return pb_utils.InferenceResponse(output_tensors=tensors)


def _strings(name: str, values: list[bytes]) -> Any:
    return pb_utils.Tensor(name, np.asarray(values, dtype=np.object_))


def parameters(request: Any) -> str:
    """The tensor if there is one, else the request's own parameters, as JSON."""
    tensor = _scalar(request, "sampling_parameters")
    if tensor is None:
        return str(request.parameters())
    return tensor.decode() if isinstance(tensor, bytes) else str(tensor)
