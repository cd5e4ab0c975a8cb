"""The models whose weights every sandbox has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from .gemma4 import A4B, B31, E2B, E4B, Gemma4
from .gemma4_config import config
from .gemma4_text import text_tensors
from .gemma4_towers import tower_tensors
from .llama import LLAMA_1B, Llama, from_spec, llama_config, llama_tensors
from .tensors import Tensors


@dataclass(frozen=True)
class Model:
    """A weights directory to be: its name, config.json and tensors."""

    name: str
    config: dict[str, Any]
    tensors: Callable[[], Tensors]


def gemma4(name: str, model: Gemma4) -> Model:
    return Model(name, config(model), lambda: chain(text_tensors(model), tower_tensors(model)))


def llama(name: str, model: Llama) -> Model:
    return Model(name, llama_config(model), lambda: llama_tensors(model))


def custom(spec: str) -> Model:
    """A small dense model from `name:layers:hidden:…`."""
    return llama(*from_spec(spec))


STANDARD = (
    gemma4("gemma-4-31b-it", B31),
    gemma4("gemma-4-31b-it-nvfp4", replace(B31, nvfp4_mlp=True)),
    gemma4("gemma-4-26b-a4b-it", A4B),
    gemma4("gemma-4-e4b-it", E4B),
    gemma4("gemma-4-e2b-it", E2B),
    llama("llama-3.2-1b-instruct", LLAMA_1B),
)
