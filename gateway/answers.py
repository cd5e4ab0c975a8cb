"""Answers in OpenAI's shapes. The model's name in them is the role that was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engines.protocol import Completion, Delta, End, Event, Usage


@dataclass(frozen=True)
class Shape:
    """Of one request's answer: a chat's or a completion's."""

    chat: bool
    role: str
    id: str
    created: int

    def whole(self, answers: Sequence[Completion], prompts: int) -> dict[str, Any]:
        """The answer of a request that does not stream."""
        choices = [self._choice(number, answer) for number, answer in enumerate(answers)]
        kind = "chat.completion" if self.chat else "text_completion"
        about = self._about(kind) | {"choices": choices}
        usage = total([answer.usage for answer in answers], prompts)
        return about | ({"usage": usage} if usage else {})

    def opening(self, number: int) -> str:
        """A chat's first event of each choice."""
        return self._chunk(number, {"delta": {"role": "assistant", "content": ""}}, None)

    def event(self, number: int, event: Event) -> str:
        """One event of a stream."""
        if isinstance(event, End):
            end: dict[str, Any] = {"delta": {}} if self.chat else {"text": ""}
            return self._chunk(number, end, event.finish_reason)
        return self._chunk(number, self._new(event), None)

    def counts(self, usages: Sequence[Usage], prompts: int) -> str:
        """The event that `include_usage` asks for; nothing where the engine does not count."""
        usage = total(usages, prompts)
        if usage is None:
            return ""
        return event_of(self._about(self._streamed) | {"choices": [], "usage": usage})

    @property
    def _streamed(self) -> str:
        return "chat.completion.chunk" if self.chat else "text_completion"

    def _about(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.role}

    def _new(self, event: Delta) -> dict[str, Any]:
        if not self.chat:
            return {"text": event.text}
        delta = {"content": event.text} if event.text else {}
        thought = {"reasoning_content": event.reasoning} if event.reasoning else {}
        return {"delta": delta | thought}

    def _chunk(self, number: int, what: dict[str, Any], reason: str | None) -> str:
        choice = {"index": number, **what, "logprobs": None, "finish_reason": reason}
        return event_of(self._about(self._streamed) | {"choices": [choice]})

    def _choice(self, number: int, answer: Completion) -> dict[str, Any]:
        if self.chat:
            message: dict[str, Any] = {"role": "assistant", "content": answer.text}
            thought = {"reasoning_content": answer.reasoning} if answer.reasoning else {}
            said: dict[str, Any] = {"message": message | thought}
        else:
            said = {"text": answer.text}
        reason = answer.finish_reason
        return {"index": number, **said, "logprobs": None, "finish_reason": reason}


def total(usages: Iterable[Usage], prompts: int) -> dict[str, int] | None:
    """Counts of all choices, each prompt's once; None where any is unknown."""
    prompt_tokens = completion_tokens = 0
    all_of_them = list(usages)
    each = max(1, len(all_of_them) // prompts)
    for number, usage in enumerate(all_of_them):
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        prompt_tokens += usage.prompt_tokens if number % each == 0 else 0
        completion_tokens += usage.completion_tokens
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def event_of(data: object, name: str = "") -> str:
    """One server-sent event."""
    content = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {content}\n\n" if name else f"data: {content}\n\n"
