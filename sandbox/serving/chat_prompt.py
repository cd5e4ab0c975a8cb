"""A conversation as the prompt that the model's own chat template makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class NoChatTemplateError(ValueError):
    """transformers' own words, as clients of vLLM see them."""

    def __init__(self) -> None:
        super().__init__(
            "As of transformers v4.44, default chat template is no longer allowed, so you must "
            "provide a chat template if the tokenizer does not define one."
        )


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def find_template(model: Path, given: str | None = None) -> str | None:
    """`given` (a file or the template itself), else what lies in the weights directory."""
    if given is not None:
        return Path(given).read_text() if "{" not in given else given
    own = model / "chat_template.jinja"
    if own.is_file():
        return own.read_text()
    found = _tokenizer(model).get("chat_template")
    if isinstance(found, list):
        found = next((entry["template"] for entry in found if entry["name"] == "default"), None)
    return found


def _tokenizer(model: Path) -> dict[str, Any]:
    file = model / "tokenizer_config.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    return found


def text_of(content: Any) -> str:
    """A message's content, whose text parts are put on lines of their own."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return "" if content is None else str(content)


def chat_prompt(
    model: Path, template: str | None, messages: list[dict[str, Any]], **options: Any
) -> str:
    """The prompt; `options` are further variables of the template.

    Raises:
        NoChatTemplateError: the model has none and none was given.
        jinja2.TemplateError: the template refuses the conversation.
    """
    if template is None:
        raise NoChatTemplateError
    tokens = {
        name: token["content"] if isinstance(token, dict) else token
        for name, token in _tokenizer(model).items()
        if name in ("bos_token", "eos_token", "pad_token", "unk_token") and token
    }
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.globals["raise_exception"] = _raise_exception
    plain = [{**message, "content": text_of(message.get("content"))} for message in messages]
    variables = {"bos_token": "", **tokens, "add_generation_prompt": True, **options}
    return environment.from_string(template).render(messages=plain, **variables)
