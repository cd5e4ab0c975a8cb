"""Deterministic answers: a pure function of model, prompt and sampling, in words one can read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat

from .sampling import Sampling

_WORDS = [
    "a",
    "the",
    "this",
    "that",
    "each",
    "every",
    "one",
    "with",
    "without",
    "before",
    "after",
    "between",
    "under",
    "over",
    "and",
    "then",
    "while",
    "because",
    "although",
    "host",
    "port",
    "berth",
    "harbour",
    "crane",
    "quay",
    "ship",
    "cargo",
    "signal",
    "lamp",
    "tide",
    "rope",
    "anchor",
    "pilot",
    "chart",
    "compass",
    "current",
    "channel",
    "bridge",
    "engine",
    "memory",
    "answer",
    "question",
    "reason",
    "measure",
    "plan",
    "limit",
    "order",
    "light",
    "wind",
    "water",
    "morning",
    "evening",
    "north",
    "south",
    "calm",
    "steady",
    "slow",
    "quick",
    "heavy",
    "small",
    "clear",
    "quiet",
    "bright",
    "takes",
    "keeps",
    "holds",
    "brings",
    "loads",
    "leaves",
    "finds",
    "carries",
    "marks",
    "moves",
    "waits",
    "turns",
]
_MARKUP = {"user", "model", "turn", "assistant", "system", "start", "bos"}
SHORTEST, LONGEST = 30, 110
"""Tokens after which an answer ends by itself."""


def tokens_of(text: str) -> int:
    """Prompt tokens: words and signs, and the beginning-of-sequence token."""
    return 1 + len(re.findall(r"\w+|[^\w\s]", text))


def answer(model: str, prompt: str, sampling: Sampling, index: int) -> Iterator[str]:
    """Tokens without end; the first words name the model and what it was asked."""
    seed = hashlib.sha256(f"{model}\0{prompt}\0{sampling.fingerprint}\0{index}".encode())
    topic = [w for w in re.findall(r"[^\W\d_]{4,}", prompt) if w.lower() not in _MARKUP][-3:]
    yield f"{model}"
    yield " here"
    yield ", on"
    for word in topic or ["nothing"]:
        yield f" {word}"
    yield ":"
    counter = 0
    while True:
        digest = hashlib.sha256(seed.digest() + counter.to_bytes(8, "big")).digest()
        for byte in digest:
            yield f" {_WORDS[byte % len(_WORDS)]}"
        counter += 1


def natural_length(model: str, prompt: str, sampling: Sampling, index: int) -> int:
    seed = hashlib.sha256(f"length\0{model}\0{prompt}\0{sampling.fingerprint}\0{index}".encode())
    return SHORTEST + int.from_bytes(seed.digest()[:4], "big") % (LONGEST - SHORTEST)


@dataclass
class Sequence:
    """One of a request's `n` outputs as it grows."""

    text: str = ""
    tokens: int = 0
    finish_reason: str | None = None
    _source: Iterator[str] = field(default_factory=lambda: iter(()))
    _end: int = 0


def begin(
    model: str, prompt: str, sampling: Sampling, index: int, *, mute: bool = False
) -> Sequence:
    source = repeat("") if mute else answer(model, prompt, sampling, index)
    end = natural_length(model, prompt, sampling, index)
    return Sequence(_source=source, _end=end)


def advance(sequence: Sequence, sampling: Sampling, room: int) -> None:
    """One token more, unless finished; `room` is what max_model_len leaves for output tokens."""
    if sequence.finish_reason:
        return
    sequence.text += next(sequence._source)
    sequence.tokens += 1
    for stop in sampling.stop:
        at = sequence.text.find(stop)
        if at >= 0:
            sequence.text = sequence.text[: at + (len(stop) if sampling.include_stop else 0)]
            sequence.finish_reason = "stop"
            return
    if sequence.tokens >= min(sampling.max_tokens, room):
        sequence.finish_reason = "length"
    elif not sampling.ignore_eos and sequence.tokens >= sequence._end:
        sequence.finish_reason = "stop"
