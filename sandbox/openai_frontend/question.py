"""OpenAI's body as a request to Triton: vLLM's tensors, or TensorRT-LLM's for everything else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.serving.chat_prompt import chat_prompt, find_template

from .errors import RefusedError, schema_error
from .models import Model

_BOTH = """
    model frequency_penalty logit_bias logprobs max_tokens n presence_penalty seed stop stream
    stream_options temperature top_p user
""".split()  # noqa: SIM905 (names read better as words)
_CHAT = """
    messages max_completion_tokens top_logprobs response_format service_tier tools tool_choice
    parallel_tool_calls function_call functions
""".split()  # noqa: SIM905
CHAT_FIELDS = {*_BOTH, *_CHAT}
COMPLETION_FIELDS = {*_BOTH, "prompt", "best_of", "echo", "suffix"}
_TO_VLLM = (
    *("frequency_penalty", "presence_penalty", "seed", "stop", "temperature", "top_p"),
    *("logprobs", "best_of"),
)
_ECHO = "exclude_input_in_output"
_TYPES: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "messages": (list,),
    "stream": (bool,),
    "stream_options": (dict,),
    "n": (int,),
    "max_tokens": (int,),
    "max_completion_tokens": (int,),
    "temperature": (int, float),
    "seed": (int,),
}


@dataclass(frozen=True)
class Prompting:
    """What the command line says of prompts; one tokenizer serves all models."""

    tokenizer: Path | None
    template: str | None
    default_max_tokens: int
    tool_parser: str | None

    def prompt(self, messages: list[dict[str, Any]]) -> str:
        """
        Raises:
            RefusedError: 500 without a tokenizer.
        """
        if self.tokenizer is None:
            raise RefusedError("Unknown tokenizer", 500)
        template = find_template(self.tokenizer, self.template)
        try:
            return chat_prompt(self.tokenizer, template, messages)
        except Exception as error:
            raise RefusedError(str(error), 500) from error


@dataclass(frozen=True)
class Question:
    """A request to Triton, and what the answer must tell."""

    body: dict[str, Any]
    stream: bool
    usage: bool


def parse_body(raw: bytes, known: set[str], needed: str) -> dict[str, Any]:
    """
    Raises:
        RefusedError: 422, with pydantic's list.
    """
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise schema_error("json_invalid", "0", "JSON decode error", {}) from error
    if not isinstance(body, dict):
        raise schema_error("model_attributes_type", "", "Input should be an object", body)
    for name in ("model", needed):
        if name not in body:
            raise schema_error("missing", name, "Field required", body)
    for name, value in body.items():
        if name not in known:
            raise schema_error("extra_forbidden", name, "Extra inputs are not permitted", value)
        types = _TYPES.get(name)
        wrong_bool = isinstance(value, bool) and types is not None and bool not in types
        if types and value is not None and (wrong_bool or not isinstance(value, types)):
            raise schema_error(f"{types[0].__name__}_type", name, "Input has a wrong type", value)
    return body


def _check(body: dict[str, Any], model: Model, prompting: Prompting) -> None:
    if (body.get("n") or 1) > 1:
        told = f"Received n={body['n']}, but only single choice (n=1) is currently supported"
        raise RefusedError(told)
    for name in ("logit_bias", "suffix"):
        if body.get(name):
            raise RefusedError(f"{name} is not currently supported")
    if not isinstance(body.get("prompt", ""), str):
        raise RefusedError("only single string input is supported")
    if model.backend == "vllm" and body.get("best_of"):
        raise RefusedError("best_of is no longer supported in vLLM backend")
    if model.backend != "vllm" and body.get("logprobs"):
        raise RefusedError("logprobs are only supported with the vLLM backend")
    if body.get("tools") and not prompting.tool_parser:
        raise RefusedError("tools need --tool-call-parser")
    if body.get("stream_options") and not body.get("stream"):
        raise RefusedError("`stream_options` can only be used when `stream` is true")


def _question(body: dict[str, Any], model: Model, prompt: str, prompting: Prompting) -> Question:
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    most, stream = asked or prompting.default_max_tokens, bool(body.get("stream"))
    make = _vllm if model.backend == "vllm" else _tensorrt_llm
    options = body.get("stream_options") or {}
    tensors = make(body, prompt, most, stream)
    if make is _tensorrt_llm and "prompt" in body and _ECHO in model.inputs:
        # Of a chat it says nothing: there the model's own configuration decides.
        tensors[_ECHO] = not body.get("echo")
    return Question(tensors, stream, bool(options.get("include_usage")))


def _vllm(body: dict[str, Any], prompt: str, most: int, stream: bool) -> dict[str, Any]:
    sampling = {name: body[name] for name in _TO_VLLM if body.get(name) is not None}
    return {
        "text_input": prompt,
        "stream": stream,
        "exclude_input_in_output": True,
        "sampling_parameters": json.dumps({**sampling, "max_tokens": most}),
        "return_num_input_tokens": True,
        "return_num_output_tokens": True,
    }


def _tensorrt_llm(body: dict[str, Any], prompt: str, most: int, stream: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"text_input": prompt, "max_tokens": most, "stream": stream}
    stop = body.get("stop")
    if stop:
        made["stop_words"] = [stop] if isinstance(stop, str) else stop
    for name in ("temperature", "top_p", "frequency_penalty", "presence_penalty", "seed"):
        if body.get(name) is not None:
            made[name] = body[name]
    return {**made, "return_num_input_tokens": True, "return_num_output_tokens": True}


def chat(body: dict[str, Any], model: Model, prompting: Prompting) -> Question:
    """
    Raises:
        RefusedError: see `Prompting.prompt`; 400 for what is not supported.
    """
    prompt = prompting.prompt(body["messages"])
    _check(body, model, prompting)
    return _question(body, model, prompt, prompting)


def completion(body: dict[str, Any], model: Model, prompting: Prompting) -> Question:
    """
    Raises:
        RefusedError: 400 for what is not supported.
    """
    _check(body, model, prompting)
    return _question(body, model, body["prompt"], prompting)
