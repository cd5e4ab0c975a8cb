"""Sampling parameters as Triton's vLLM backend reads them: JSON in, vLLM's names only."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_FLOATS = {
    *("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty"),
    "repetition_penalty",
}
_INTS = {
    *("n", "best_of", "top_k", "seed", "max_tokens", "min_tokens", "logprobs", "prompt_logprobs"),
    "truncate_prompt_tokens",
}
_BOOLS = {
    *("ignore_eos", "skip_special_tokens", "spaces_between_special_tokens", "detokenize"),
    "include_stop_str_in_output",
}
_OTHERS = {
    *("stop", "stop_token_ids", "bad_words", "logit_bias", "structured_outputs", "lora_name"),
    *("output_kind", "guided_decoding", "allowed_token_ids", "extra_args"),
}


@dataclass(frozen=True)
class Sampling:
    max_tokens: int = 16
    n: int = 1
    ignore_eos: bool = False
    include_stop: bool = False
    stop: tuple[str, ...] = ()
    fingerprint: str = ""
    """Everything that was asked, in one canonical text: answers are a function of it."""


def _convert(name: str, value: Any) -> Any:
    if name in _FLOATS:
        return float(value)
    if name in _INTS:
        return int(value)
    if name in _BOOLS:
        return str(value).lower() == "true"
    if name in _OTHERS:
        return value
    raise TypeError(f"Unexpected keyword argument '{name}'")


def parse(text: str, log: Callable[[str], None]) -> Sampling | None:
    """None where a name or a value is wrong: NVIDIA's backend only logs it and stumbles later."""
    try:
        given = {name: _convert(name, value) for name, value in json.loads(text).items()}
        if given.get("temperature", 1.0) < 0 or given.get("max_tokens", 1) < 1:
            raise ValueError("temperature must be non-negative and max_tokens at least 1")
        if not 0 < given.get("top_p", 1.0) <= 1:
            raise ValueError(f"top_p must be in (0, 1], got {given['top_p']}.")
    except (TypeError, ValueError) as error:
        log(f"[vllm] Was trying to create `TritonSamplingParams`, but got exception: {error}")
        return None
    stop = given.get("stop") or ()
    return Sampling(
        max_tokens=given.get("max_tokens", 16),
        n=given.get("n", 1),
        ignore_eos=given.get("ignore_eos", False),
        include_stop=given.get("include_stop_str_in_output", False),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        fingerprint=json.dumps(
            {k: v for k, v in given.items() if k not in ("max_tokens", "stop", "n")}, sort_keys=True
        ),
    )
