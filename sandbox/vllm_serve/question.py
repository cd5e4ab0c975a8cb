"""A request's body, checked as vLLM checks it, and what follows from it for the engine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from sandbox.serving.chat_prompt import chat_prompt
from sandbox.vllm_standin import sampling
from sandbox.vllm_standin.answers import tokens_of
from sandbox.vllm_standin.sampling import Sampling

from .errors import RefusedError, unknown_model, unreadable
from .settings import Settings

_TO_ENGINE = (
    *("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty"),
    *("repetition_penalty", "min_tokens", "stop_token_ids", "bad_words", "logit_bias"),
    *("ignore_eos", "include_stop_str_in_output"),
)
"""What goes on to the engine as it stands; unknown fields are ignored."""
_TYPES: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "stream": (bool,),
    "stream_options": (dict,),
    "n": (int,),
    "max_tokens": (int,),
    "max_completion_tokens": (int,),
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": (int,),
    "seed": (int,),
    "stop": (str, list),
    "messages": (list,),
    "tools": (list,),
}
COMPLETION_TOKENS = 16


@dataclass(frozen=True)
class Question:
    """What the server needs to answer; `prompts` has one for a chat, several for a completion."""

    prompts: list[str]
    sampling: Sampling
    stream: bool
    include_usage: bool
    continuous_usage: bool
    echo: bool = False


def parse_body(raw: bytes) -> dict[str, Any]:
    """
    Raises:
        RefusedError: no JSON, no object, or a known field of a wrong type.
    """
    try:
        body = json.loads(raw)
    except ValueError as error:
        at = getattr(error, "pos", 0)
        raise unreadable(
            f"[{{'type': 'json_invalid', 'loc': ('body', {at}), 'msg': 'JSON decode error', "
            f"'input': {{}}, 'ctx': {{'error': '{getattr(error, 'msg', error)}'}}}}]"
        ) from error
    if not isinstance(body, dict):
        raise unreadable("Input should be a valid dictionary")
    for name, types in _TYPES.items():
        value = body.get(name)
        wrong_bool = isinstance(value, bool) and bool not in types
        if value is not None and (wrong_bool or not isinstance(value, types)):
            wanted = " or ".join(kind.__name__ for kind in types)
            raise unreadable(f"Input should be a valid {wanted}: ('body', '{name}')")
    return body


def check_model(body: dict[str, Any], settings: Settings) -> None:
    """No model at all is allowed, any other than the served ones is not."""
    asked = body.get("model")
    if asked is not None and asked not in settings.names:
        raise unknown_model(asked, settings.names)


def _options(body: dict[str, Any], settings: Settings) -> tuple[bool, bool]:
    options = body.get("stream_options")
    if options is not None and not body.get("stream"):
        raise unreadable("Stream options can only be defined when `stream=True`.")
    options = options or {}
    wanted = bool(options.get("include_usage")) or settings.always_usage
    return wanted, wanted and bool(options.get("continuous_usage_stats"))


def _sampling(body: dict[str, Any], most: int) -> Sampling:
    given = {name: body[name] for name in _TO_ENGINE if body.get(name) is not None}
    said: list[str] = []
    given |= {"n": body.get("n") or 1, "stop": body.get("stop") or [], "max_tokens": most}
    found = sampling.parse(json.dumps(given), said.append)
    if found is None or found.n < 1:
        words = said[0].partition("exception: ")[2] if said else "n must be at least 1, got 0."
        raise RefusedError(words)
    return found


def _room(body: dict[str, Any], prompts: list[str], settings: Settings, default: int | None) -> int:
    """The request's limit of output tokens, after vLLM's two checks against the context length."""
    name = "max_tokens" if body.get("max_completion_tokens") is None else "max_completion_tokens"
    asked, longest = body.get(name), settings.max_model_len
    if asked is not None and asked > longest:
        raise RefusedError(
            f"{name}={asked} cannot be greater than max_model_len=max_total_tokens={longest}. "
            "Please request fewer output tokens.",
            param=name,
        )
    length = max(map(tokens_of, prompts))
    output = asked if asked is not None else 0
    if length + output > longest or length >= longest:
        raise RefusedError(
            f"This model's maximum context length is {longest} tokens. However, you requested "
            f"{output} output tokens and your prompt contains {length} input tokens, for a total "
            f"of {length + output} tokens (max_model_len={longest}). Please reduce the length of "
            "the input prompt or the number of requested output tokens.",
            param="input_tokens",
        )
    if asked is not None:
        return int(asked)
    return min(default or longest, longest - length)


def chat(body: dict[str, Any], settings: Settings) -> Question:
    """A conversation.

    Raises:
        RefusedError: it is none, has no template, or does not fit.
    """
    messages = body.get("messages")
    if not messages or not all(isinstance(m, dict) and "role" in m for m in messages):
        raise unreadable("Field required: ('body', 'messages')")
    if body.get("tools") and body.get("tool_choice", "auto") == "auto" and not settings.tools:
        raise RefusedError(
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        )
    options = body.get("chat_template_kwargs") or {}
    add = body.get("add_generation_prompt", True)
    try:
        prompt = chat_prompt(
            settings.model, settings.template, messages, add_generation_prompt=add, **options
        )
    except (ValueError, TypeError, TemplateError) as error:
        raise RefusedError(str(error)) from error
    usage, continuous = _options(body, settings)
    wanted = _sampling(body, _room(body, [prompt], settings, None))
    return Question([prompt], wanted, bool(body.get("stream")), usage, continuous)


def completion(body: dict[str, Any], settings: Settings) -> Question:
    """One prompt or several, as text or as token ids.

    Raises:
        RefusedError: there is none, or it does not fit.
    """
    given = body.get("prompt")
    if given is None or given in ("", []):
        raise RefusedError("Either prompt or prompt_embeds must be provided and non-empty.")
    if body.get("suffix"):
        raise RefusedError("suffix is not currently supported")
    prompts = _prompts(given)
    usage, continuous = _options(body, settings)
    wanted = _sampling(body, _room(body, prompts, settings, COMPLETION_TOKENS))
    stream, echo = bool(body.get("stream")), bool(body.get("echo"))
    return Question(prompts, wanted, stream, usage, continuous, echo)


def _prompts(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return given
    if isinstance(given, list) and all(isinstance(one, int) for one in given):
        return [" ".join(map(str, given))]
    if isinstance(given, list) and all(isinstance(one, list) for one in given):
        return [" ".join(map(str, one)) for one in given]
    raise unreadable("Input should be a valid string: ('body', 'prompt')")
