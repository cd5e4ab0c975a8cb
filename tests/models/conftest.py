"""Real headers of the reference layout's models, read as a host reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from host.weights import read
from models.weights import Weights
from sandbox.weights.catalog import STANDARD
from sandbox.weights.directory import write_model

L4_MIB = 23_034 - 469
"""Of an L4 as CUDA reports it."""


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Weights]:
    """A model's weights by name, written and read once."""
    root = tmp_path_factory.mktemp("weights")

    @cache
    def made(name: str) -> Weights:
        write_model(root, next(model for model in STANDARD if model.name == name))
        return Weights.model_validate(read(Path(root / name)))

    return made
