"""The JSON of answers and chunks: chat chunks leave nulls out, completion chunks show them."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

Counts = dict[str, Any]
"""What `usage` makes."""


def usage(prompt: int, output: int) -> Counts:
    counts = {"prompt_tokens": prompt, "total_tokens": prompt + output}
    return {**counts, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": 0}}


@dataclass
class Chat:
    """`/v1/chat/completions`."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(16)}")
    created: int = field(default_factory=lambda: int(time.time()))

    def _head(self, name: str) -> dict[str, Any]:
        return {"id": self.id, "object": name, "created": self.created, "model": self.model}

    def first(self, count: int, counts: Counts | None) -> list[str]:
        """Who speaks, with the space before the line's end that the real one has."""
        delta = {"role": "assistant", "content": ""}
        return [
            f"data: {self._chunk([{'index': index, 'delta': delta}], counts)} \n\n"
            for index in range(count)
        ]

    def _chunk(self, choices: list[dict[str, Any]], counts: Counts | None) -> str:
        chunk = {**self._head("chat.completion.chunk"), "choices": choices}
        return _json(chunk | ({"usage": counts} if counts else {}))

    def delta(self, index: int, text: str, reason: str | None, counts: Counts | None) -> str:
        choice: dict[str, Any] = {"index": index, "delta": {"content": text}}
        choice |= {"finish_reason": reason} if reason else {}
        choice["avg_decoded_tokens_per_iter"] = 1.0
        return f"data: {self._chunk([choice], counts)}\n\n"

    def usage_event(self, counts: Counts) -> str:
        chunk = {**self._head("chat.completion.chunk"), "choices": [], "usage": counts}
        return f"data: {_json({**chunk, 'prompt_token_ids': None})}\n\n"

    def whole(self, texts: list[str], reasons: list[str], counts: Counts) -> dict[str, Any]:
        choices: list[dict[str, Any]] = [
            {
                "index": index,
                "message": {
                    "role": "assistant",
                    "content": text,
                    "reasoning_content": None,
                    "tool_calls": [],
                },
                "logprobs": None,
                "finish_reason": reason,
                "stop_reason": None,
                "disaggregated_params": None,
                "avg_decoded_tokens_per_iter": 1.0,
            }
            for index, (text, reason) in enumerate(zip(texts, reasons, strict=True))
        ]
        answer = {**self._head("chat.completion"), "choices": choices, "usage": counts}
        return {**answer, "prompt_token_ids": None}


@dataclass
class Completion(Chat):
    """`/v1/completions`."""

    id: str = field(default_factory=lambda: f"cmpl-{secrets.token_hex(16)}")

    def first(self, count: int, counts: Counts | None) -> list[str]:  # noqa: ARG002
        return []

    def _choice(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        nothing = dict.fromkeys(("token_ids", "logprobs", "context_logits"), None)
        ends = {"finish_reason": reason, "stop_reason": None, "disaggregated_params": None}
        return {"index": index, "text": text, **nothing, **ends}

    def delta(self, index: int, text: str, reason: str | None, counts: Counts | None) -> str:
        choices = [self._choice(index, text, reason)]
        chunk = {**self._head("text_completion"), "choices": choices, "usage": counts}
        return f"data: {_json(chunk)}\n\n"

    def usage_event(self, counts: Counts) -> str:
        chunk = {**self._head("text_completion"), "choices": [], "usage": counts}
        return f"data: {_json(chunk)}\n\n"

    def whole(self, texts: list[str], reasons: list[str], counts: Counts) -> dict[str, Any]:
        pairs = enumerate(zip(texts, reasons, strict=True))
        choices = [self._choice(index, text, reason) for index, (text, reason) in pairs]
        answer = {**self._head("text_completion"), "choices": choices, "usage": counts}
        return {**answer, "prompt_token_ids": None}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
