"""Requests as OpenAI's API has them, as far as every engine can do them."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from engines.failure import EngineError, refused
from engines.protocol import Sampling

MOST_CHOICES = 16
MOST_MESSAGES = 10_000
MOST_MEMBERS = 100
"""Of one object; those that are known here are about 30."""
_UNUSED = {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
           "parallel_tool_calls"}  # fmt: skip
"""Fields that change nothing in an answer."""
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "modalities": (["text"],),
    "echo": (False,),
    "suffix": ("",),
    "best_of": (1,),
}
"""Fields that no engine here does, with the values that ask for nothing."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _parts(value: object) -> object:
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


class _Strict(BaseModel):
    """Pydantic keeps an error for each thing that is wrong before the first can be told, and one
    body has room for millions."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > MOST_MEMBERS:
            raise ValueError(f"an object of {len(value)} members, more than {MOST_MEMBERS}")
        return value


class _Part(_Strict):
    """Models that see and hear are served, but what they see does not pass through `generate`."""

    type: Literal["text"]
    text: str


class Message(_Strict):
    """One message of a chat; `content` is text, or text parts that are put together."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[
        list[_Part], Field(max_length=MOST_MESSAGES, fail_fast=True), BeforeValidator(_parts)
    ] = Field(default_factory=list)
    name: str | None = None
    tool_call_id: str | None = None

    def plain(self) -> dict[str, str]:
        """As templates expect it: they know no `developer`, and not all know parts."""
        role = "system" if self.role == "developer" else self.role
        told = {"role": role, "content": "\n".join(part.text for part in self.content)}
        return told | ({"name": self.name} if self.name else {})


class _StreamOptions(_Strict):
    include_usage: bool = False
    include_obfuscation: bool = False


class _Asked(_Strict):
    model: Annotated[str, Field(min_length=1)]
    stream: bool = False
    stream_options: _StreamOptions = _StreamOptions()
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] = 1
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0)] | None = None
    stop: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=256)]],
        Field(max_length=16, fail_fast=True),
        BeforeValidator(_listed),
    ] = Field(default_factory=list)

    def sampling(self, max_tokens: int) -> Sampling:
        """For the engine."""
        return Sampling(
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            seed=self.seed,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            repetition_penalty=self.repetition_penalty,
            stop=tuple(self.stop),
        )


class ChatBody(_Asked):
    """POST /v1/chat/completions."""

    messages: Annotated[
        list[Message], Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)
    ]
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Names that the model's own template knows (vLLM's field), `enable_thinking` for one."""


class CompletionBody(_Asked):
    """POST /v1/completions: texts, not tokens, because native engines take texts."""

    prompt: Annotated[
        list[str],
        Field(min_length=1, max_length=MOST_CHOICES, fail_fast=True),
        BeforeValidator(_listed),
    ]


Body = TypeVar("Body", ChatBody, CompletionBody)


def parsed(kind: type[Body], content: bytes) -> Body:
    """The body, or an EngineError (400) that names the field and what is wrong with it."""
    asked = _without_nulls(_object(content))
    for field, harmless in _HARMLESS.items():
        if field in asked and asked.pop(field) not in harmless:
            raise refused(f"{field} is not supported by this role's engine", param=field)
    try:
        return kind.model_validate({k: v for k, v in asked.items() if k not in _UNUSED})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = _path(first["loc"])
        known = first["type"] != "extra_forbidden"
        what = first["msg"][:1].lower() + first["msg"][1:] if known else "not known here"
        raise refused(f"{field}: {what}", param=field) from None


def _object(content: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(content)
    except (ValueError, RecursionError):
        raise refused("the body is not JSON", code="invalid_json") from None
    if not isinstance(asked, dict):
        raise refused("the body is not a JSON object", code="invalid_json")
    return asked


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """Clients write null for what they do not set, in messages too."""
    kept = {key: each for key, each in value.items() if each is not None}
    if isinstance(kept.get("messages"), list):
        kept["messages"] = [
            _without_nulls(each) if isinstance(each, dict) else each for each in kept["messages"]
        ]
    return kept


def _path(loc: tuple[int | str, ...]) -> str:
    """`messages[0].role`, as OpenAI writes it."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return text.removeprefix(".")


def max_tokens_of(asked: ChatBody | CompletionBody, default: int, most: int) -> int:
    """How many tokens a request may make.

    Raises:
        EngineError: it asks for more than the role allows (400).
    """
    wanted, field = asked.max_tokens, "max_tokens"
    if isinstance(asked, ChatBody) and asked.max_completion_tokens is not None:
        wanted, field = asked.max_completion_tokens, "max_completion_tokens"
    if wanted is not None and wanted > most:
        raise EngineError(
            f"{field} is {wanted}, and this role gives {most} at most",
            status=400,
            retry=False,
            param=field,
        )
    return wanted or min(default, most)
