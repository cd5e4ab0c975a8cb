"""A request's body: fields that the real one does not know are refused, any model name is taken."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from sandbox.serving.chat_prompt import chat_prompt
from sandbox.vllm_standin import sampling
from sandbox.vllm_standin.answers import tokens_of
from sandbox.vllm_standin.sampling import Sampling

from .errors import RefusedError, SchemaError, schema_error
from .settings import Settings

_BOTH = """
    model frequency_penalty logit_bias logprobs n presence_penalty seed stop stream stream_options
    temperature top_p user best_of use_beam_search top_k top_p_min min_p repetition_penalty
    length_penalty early_stopping bad stop_token_ids include_stop_str_in_output ignore_eos
    min_tokens skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens echo
    add_special_tokens response_format detokenize lora_request disaggregated_params
    prompt_ignore_length max_tokens return_context_logits return_generation_logits
""".split()  # noqa: SIM905 (names read better as words)
_CHAT = """
    messages max_completion_tokens top_logprobs tools tool_choice reasoning_effort
    add_generation_prompt documents chat_template chat_template_kwargs cache_salt
    parallel_tool_calls prompt_logprobs
""".split()  # noqa: SIM905
CHAT_FIELDS = {*_BOTH, *_CHAT}
COMPLETION_FIELDS = {*_BOTH, "prompt", "suffix"}
_TO_ENGINE = (
    *("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty"),
    *("repetition_penalty", "min_tokens", "ignore_eos", "include_stop_str_in_output"),
)
_TYPES: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "stream": (bool,),
    "stream_options": (dict,),
    "n": (int,),
    "max_tokens": (int,),
    "max_completion_tokens": (int,),
    "temperature": (int, float),
    "seed": (int,),
    "stop": (str, list),
    "messages": (list,),
    "prompt": (str, list),
}


@dataclass(frozen=True)
class Question:
    """One prompt; `model` is what the client said, and is said back."""

    model: str
    prompt: str
    sampling: Sampling
    stream: bool
    usage: bool
    continuous_usage: bool


def parse_body(raw: bytes, known: set[str], needed: str) -> dict[str, Any]:
    """
    Raises:
        SchemaError: no JSON object, an unknown field, a wrong type, or one that is missing.
    """
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise SchemaError(f"[{{'type': 'json_invalid', 'msg': '{error}'}}]") from error
    if not isinstance(body, dict):
        raise schema_error("model_attributes_type", "", "Input should be a valid dictionary")
    for name, value in body.items():
        if name not in known:
            raise schema_error("extra_forbidden", name, "Extra inputs are not permitted")
        types = _TYPES.get(name)
        wrong_bool = isinstance(value, bool) and types is not None and bool not in types
        if types and value is not None and (wrong_bool or not isinstance(value, types)):
            raise schema_error(f"{types[0].__name__}_type", name, "Input has a wrong type")
    for name in ("model", needed):
        if body.get(name) is None:
            raise schema_error("missing", name, "Field required")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise schema_error(
            "value_error", "stream_options", "Stream options can only be set when stream is true"
        )
    return body


def _question(body: dict[str, Any], prompt: str, settings: Settings, longest: int) -> Question:
    length = tokens_of(prompt)
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    if length > settings.max_num_tokens:
        raise RefusedError(
            f"The sum of prompt length ({length}) and query length (0) should not exceed "
            f"max_num_tokens ({settings.max_num_tokens})"
        )
    if length + (asked or 1) > longest:
        raise RefusedError(
            f"The sum of prompt length ({length}) and max_tokens ({asked}) should not exceed "
            f"max_seq_len ({longest})"
        )
    given = {name: body[name] for name in _TO_ENGINE if body.get(name) is not None}
    given |= {"n": body.get("n") or 1, "stop": body.get("stop") or []}
    # Unlike OpenAI's and vLLM's completions there is no limit of 16.
    given["max_tokens"] = asked or longest - length
    said: list[str] = []
    wanted = sampling.parse(json.dumps(given), said.append)
    if wanted is None:
        raise RefusedError(said[0].partition("exception: ")[2])
    options = body.get("stream_options")
    usage = options is not None and bool(options.get("include_usage", True))
    continuous = usage and bool((options or {}).get("continuous_usage_stats"))
    stream = bool(body.get("stream"))
    return Question(body["model"], prompt, wanted, stream, usage, continuous)


def chat(raw: bytes, settings: Settings, longest: int) -> Question:
    """
    Raises:
        RefusedError: it cannot be answered.
    """
    body = parse_body(raw, CHAT_FIELDS, "messages")
    template = body.get("chat_template") or settings.template
    try:
        prompt = chat_prompt(
            settings.model,
            template,
            body["messages"],
            add_generation_prompt=body.get("add_generation_prompt", True),
            **(body.get("chat_template_kwargs") or {}),
        )
    except (ValueError, TypeError, AttributeError, TemplateError) as error:
        raise RefusedError(str(error)) from error
    return _question(body, prompt, settings, longest)


def completion(raw: bytes, settings: Settings, longest: int) -> Question:
    """
    Raises:
        RefusedError: it cannot be answered.
    """
    body = parse_body(raw, COMPLETION_FIELDS, "prompt")
    prompt = body["prompt"]
    if isinstance(prompt, list):
        # Several prompts are not played: one is what the gateway sends.
        prompt = prompt[0] if prompt and isinstance(prompt[0], str) else " ".join(map(str, prompt))
    return _question(body, prompt, settings, longest)
