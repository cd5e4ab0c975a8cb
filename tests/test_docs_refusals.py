"""Each refusal that the page promises to explain has a row there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/refusals.md").read_text()
EXPLAINED = (
    "models/plan_checks.py",
    "models/serving.py",
    "models/trtllm.py",
    "host/routes.py",
    "host/gateway.py",
    "components/providers/gateway_routes.py",
    "components/providers/running_unit.py",
    "components/providers/served_unit.py",
)
WORDS = 3
"""Of a cause, in a row, that tell it from others."""


def causes(file: Path) -> Iterator[ast.expr]:
    """What the refusals of a file say first, whether there and then or by a name."""
    for function in ast.walk(ast.parse(file.read_text())):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Name(id="Refusal"), args=[ast.Name(id=name), *_]):
                    yield from _assigned(function, name)
                case ast.Call(func=ast.Name(id="Refusal"), args=[said, *_]):
                    yield said


def _assigned(function: ast.AST, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield node.value
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=True)
                yield from (v for t, v in pairs if isinstance(t, ast.Name) and t.id == name)


def bare(text: str) -> list[str]:
    """Its words without marks."""
    return re.findall(r"[\w'-]+", text)


def begins(cause: ast.expr) -> str:
    """The first words of a cause that stand together, whatever is filled in around them."""
    parts = cause.values if isinstance(cause, ast.JoinedStr) else [cause]
    texts = [part.value for part in parts if isinstance(part, ast.Constant)]
    pieces = [words for text in texts if len(words := bare(str(text))) > 1]
    return " ".join(pieces[0][:WORDS])


@pytest.mark.parametrize("name", EXPLAINED)
def test_each_refusal_has_a_row(name: str) -> None:
    found = list(causes(ROOT / name))
    assert found
    page = f" {' '.join(bare(PAGE))} "
    for cause in found:
        assert f" {begins(cause)} " in page, f"{name}: {ast.unparse(cause)}"
