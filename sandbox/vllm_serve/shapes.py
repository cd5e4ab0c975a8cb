"""The JSON of answers and chunks, field for field as vLLM's clients see them."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Any


def usage(prompt: int, output: int, details: bool) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "total_tokens": prompt + output, "completion_tokens": output}
    return {**counts, "prompt_tokens_details": {"cached_tokens": 0} if details else None}


@dataclass
class Chat:
    """`/v1/chat/completions`."""

    model: str
    role: str
    request_id: str | None
    id: str = ""
    created: int = field(default_factory=lambda: int(time.time()))
    chunk_object = "chat.completion.chunk"

    def __post_init__(self) -> None:
        self.id = f"chatcmpl-{self.request_id or secrets.token_hex(8)}"

    def _head(self, name: str) -> dict[str, Any]:
        return {"id": self.id, "object": name, "created": self.created, "model": self.model}

    def chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._head(self.chunk_object), "choices": choices}

    def first(self, count: int) -> list[dict[str, Any]]:
        """A chunk for each output, before any token: who speaks."""
        delta = {"role": self.role, "content": ""}
        choice = {"delta": delta, "logprobs": None, "finish_reason": None}
        return [
            {**self.chunk([{"index": index, **choice}]), "prompt_token_ids": None}
            for index in range(count)
        ]

    def delta(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": index, "delta": {"content": text}, "logprobs": None}
        choice["finish_reason"] = reason
        if reason:
            choice["stop_reason"] = None
        return {**choice, "token_ids": None}

    def whole(self, texts: list[str], reasons: list[str], counts: dict[str, Any]) -> dict[str, Any]:
        nothing: dict[str, Any] = dict.fromkeys(
            ("refusal", "annotations", "audio", "function_call"), None
        )
        choices = [
            {
                "index": index,
                "message": {
                    "role": self.role,
                    "content": text,
                    **nothing,
                    "tool_calls": [],
                    "reasoning": None,
                },
                "logprobs": None,
                "finish_reason": reason,
                "stop_reason": None,
                "token_ids": None,
            }
            for index, (text, reason) in enumerate(zip(texts, reasons, strict=True))
        ]
        answer = {**self._head("chat.completion"), "choices": choices, "service_tier": None}
        answer |= {"system_fingerprint": None, "usage": counts, "prompt_logprobs": None}
        return answer | {"prompt_token_ids": None, "kv_transfer_params": None}

    def usage_chunk(self, counts: dict[str, Any]) -> dict[str, Any]:
        return {**self.chunk([]), "usage": _without_nulls(counts)}


@dataclass
class Completion(Chat):
    """`/v1/completions`: the same with `text` for `delta`, and with its nulls."""

    chunk_object = "text_completion"

    def __post_init__(self) -> None:
        self.id = f"cmpl-{self.request_id or secrets.token_hex(8)}"

    def chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**super().chunk(choices), "usage": None}

    def first(self, count: int) -> list[dict[str, Any]]:  # noqa: ARG002
        return []

    def delta(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        ends = {"logprobs": None, "finish_reason": reason, "stop_reason": None}
        ids = {"prompt_token_ids": None, "token_ids": None}
        return {"index": index, "text": text, **ends, **ids}

    def whole(self, texts: list[str], reasons: list[str], counts: dict[str, Any]) -> dict[str, Any]:
        choices = [
            {**self.delta(index, text, reason), "prompt_logprobs": None}
            for index, (text, reason) in enumerate(zip(texts, reasons, strict=True))
        ]
        answer = {**self._head("text_completion"), "choices": choices, "service_tier": None}
        return answer | {"system_fingerprint": None, "usage": counts, "kv_transfer_params": None}


def _without_nulls(counts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in counts.items() if value is not None}
