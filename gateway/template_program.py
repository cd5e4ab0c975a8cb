"""A process that renders one model's chat template, and nothing else.

A template comes with the weights, from wherever those come from, and is a program: Jinja's sandbox
keeps it from Python's objects but not from running for ever or from filling the memory. So it runs
here, with a bound on memory that it sets itself, and whoever started it bounds the time.

Standard library and jinja2 only. Argument: the weights directory. One JSON object a line, in and
out; the first one out is `{}` or `{"error": …}` with `"kind"` `missing` or `broken`.
"""

from __future__ import annotations

import json
import resource
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MEMORY = 2**30
"""Bytes of address space: a tokenizer.json of 30 MB takes a third of it while it is read."""
CPU_S = 30
"""Seconds of processor time for one rendering: ends it where whoever bounds it was killed first."""
LONGEST = 4 * 2**20
"""Characters of a rendered prompt: more than any model's context."""


class RefusedByTemplateError(Exception):
    """The template's own `raise_exception`: the messages are not what it takes."""


class GenerationBlocks(Extension):
    """`{% generation %}` marks the assistant's words for training; here it is only let through."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def read(weights: Path) -> tuple[str, dict[str, str], bool]:
    """The template, the special tokens by name, and whether the tokenizer adds its first itself.

    The same places as transformers' `apply_chat_template`: chat_template.jinja before the
    tokenizer's configuration, there a text or a list of named ones; a processor's file last.
    """
    about = _json(weights / "tokenizer_config.json")
    special = _json(weights / "special_tokens_map.json") | about
    tokens = {
        name: token
        for name, value in special.items()
        if name.endswith("_token") and (token := _token(value)) is not None
    }
    file = weights / "chat_template.jinja"
    template: Any = file.read_text() if file.is_file() else about.get("chat_template")
    if isinstance(template, list):
        named = {each.get("name"): each.get("template") for each in template}
        template = named.get("default") or next(iter(named.values()), None)
    template = template or _json(weights / "chat_template.json").get("chat_template")
    if not isinstance(template, str):
        raise FileNotFoundError
    adds = about.get("add_bos_token")
    if adds is None:
        adds = _begins_with(_json(weights / "tokenizer.json").get("post_processor"), tokens)
    return template, tokens, bool(adds)


def _json(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text()) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def _token(value: object) -> str | None:
    found = value.get("content") if isinstance(value, dict) else value
    return found if isinstance(found, str) else None


def _begins_with(processor: Any, tokens: dict[str, str]) -> bool:
    """Whether a tokenizer.json's post processor puts the first token before every text."""
    if not isinstance(processor, dict):
        return False
    if processor.get("type") == "Sequence":
        return any(_begins_with(each, tokens) for each in processor.get("processors", ()))
    first: dict[str, Any] = next(iter(processor.get("single") or ()), {})
    return bool(first.get("SpecialToken", {}).get("id") == tokens.get("bos_token", ""))


def compiled(template: str) -> jinja2.Template:
    """With what transformers offers templates (`utils/chat_template_utils.py`)."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[GenerationBlocks, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    return environment.from_string(template)


def _tojson(value: Any, ensure_ascii: bool = False, **more: Any) -> str:
    """Jinja's own escapes for HTML, which a model has never seen."""
    return json.dumps(value, ensure_ascii=ensure_ascii, **more)


def _raise(message: str) -> NoReturn:
    raise RefusedByTemplateError(message)


def rendered(template: jinja2.Template, tokens: dict[str, str], asked: dict[str, Any]) -> str:
    """The prompt; ValueError where it has no end."""
    given = {**tokens, "tools": None, "documents": None, "add_generation_prompt": True, **asked}
    pieces, size = [], 0
    for piece in template.generate(**given):
        size += len(piece)
        if size > LONGEST:
            raise ValueError(f"it gives more than {LONGEST} characters")
        pieces.append(piece)
    return "".join(pieces)


def main(weights: str) -> None:
    """Serve lines until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        source, tokens, adds_bos = read(Path(weights))
        template = compiled(source)
    except FileNotFoundError:
        _say({"error": "the weights directory holds no chat template", "kind": "missing"})
        return
    except Exception as error:  # noqa: BLE001 (it is somebody else's program)
        _say({"error": _words(error), "kind": "broken"})
        return
    _say({})
    bos = tokens.get("bos_token", "")
    for line in sys.stdin:
        _allow(CPU_S)
        try:
            text = rendered(template, tokens, json.loads(line))
            # The engine's tokenizer puts its first token before every prompt: twice is wrong.
            _say({"text": text.removeprefix(bos) if adds_bos else text})
        except RefusedByTemplateError as error:
            _say({"error": _words(error), "kind": "refused"})
        except Exception as error:  # noqa: BLE001
            _say({"error": _words(error), "kind": "broken"})


def _allow(seconds: int) -> None:
    """More processor time than was used so far; the kernel ends a process that takes more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


def _words(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:500]


def _say(answer: dict[str, str]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
