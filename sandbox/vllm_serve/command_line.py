"""`vllm serve MODEL …` as argparse reads it: what it does not know ends it with status 2."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from . import flags

_SCALE = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
_NO_MODEL = (
    "`model` should be provided as the first positional argument when using `vllm serve`. "
    "i.e. `vllm serve <model> --<arg> <value>`."
)


def human_readable_int(text: str) -> int:
    """
    >>> human_readable_int("25.6k"), human_readable_int("8K"), human_readable_int("512")
    (25600, 8192, 512)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG])", text.strip())
    if found is None:
        return int(text)
    number, scale = found.groups()
    if scale.isupper() and "." in number:
        raise argparse.ArgumentTypeError(
            f"Decimals are not allowed with binary suffixes like {scale}. Did you mean to use "
            f"{number}{scale.lower()} instead?"
        )
    return int(float(number) * _SCALE[scale])


def human_readable_int_or_auto(text: str) -> int:
    return -1 if text.strip().lower() in ("-1", "auto") else human_readable_int(text)


def loads(text: str) -> Any:
    """JSON; named so that argparse says `invalid loads value`, as it does for vLLM's."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"Value {text} cannot be converted to {json.loads}."
        ) from error


def serve_parser() -> argparse.ArgumentParser:
    """Only what was given is in the result: defaults are the engine's and the server's."""
    parser = argparse.ArgumentParser(prog="vllm serve", argument_default=argparse.SUPPRESS)
    parser.add_argument("model_tag", nargs="?")
    for name in flags.SWITCHES:
        parser.add_argument(f"--{name}", action=argparse.BooleanOptionalAction)
    for name in flags.MARKS:
        parser.add_argument(f"--{name}", action="store_true")
    kinds: list[tuple[list[str], Callable[[str], Any]]] = [
        (flags.INTEGERS, int),
        (flags.HUMAN_INTEGERS, human_readable_int),
        (["max-model-len"], human_readable_int_or_auto),
        (flags.NUMBERS, float),
        (flags.JSON_VALUES, loads),
        (flags.WORDS, str),
    ]
    for names, kind in kinds:
        for name in names:
            short = [flags.SHORT[name]] if name in flags.SHORT else []
            parser.add_argument(f"--{name}", *short, type=kind)
    for name in flags.LISTS:
        parser.add_argument(f"--{name}", nargs="+")
    for name, choices in flags.CHOICES.items():
        parser.add_argument(f"--{name}", choices=choices)
    return parser


def _with_dashes(word: str) -> str:
    """vLLM takes --max_model_len for --max-model-len."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def _from_file(path: str) -> list[str]:
    """A `--config` file's keys as flags; those of the command line come later and win."""
    words: list[str] = []
    for name, value in yaml.safe_load(Path(path).read_text()).items():
        if name == "model":
            words.insert(0, str(value))
        elif isinstance(value, bool):
            words += [f"--{name}"] if value else []
        elif isinstance(value, list):
            words += [f"--{name}", *map(str, value)]
        else:
            words += [f"--{name}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return words


def parse(words: list[str]) -> argparse.Namespace:
    """What stands after `vllm serve`; ends the process with status 2 where argparse would.

    Raises:
        ValueError: `--served-model-name` and no model before it.
    """
    parser = serve_parser()
    plain = [_with_dashes(word) for word in words]
    for index, word in enumerate(plain):
        if word == "--config" or word.startswith("--config="):
            path = word.partition("=")[2] or (plain[index + 1 : index + 2] or [""])[0]
            if not path.endswith((".yaml", ".yml")):
                parser.error("Config file must be of a yaml/yml type.")
            # A model given by word stays first, where argparse expects it.
            first = plain[:1] if plain and not plain[0].startswith("-") else []
            plain = [*first, *_from_file(path), *plain[len(first) :]]
            break
    found = parser.parse_args(plain)
    found.model = getattr(found, "model_tag", None) or getattr(found, "model", None)
    if found.model is None:
        if hasattr(found, "served_model_name"):
            # It takes every word up to the next flag, the model too.
            raise ValueError(_NO_MODEL)
        found.model = "Qwen/Qwen3-0.6B"
    return found
