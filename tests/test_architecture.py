"""Imports point one way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = {
    "models": set(),
    "config": {"models"},
    "components.renderers": {"models"},
    "engines": {"models"},
    "gateway": {"models", "engines"},
    "components.providers": {"models", "engines", "components.renderers"},
    "components.resources": {"models", "config", "components.renderers", "components.providers"},
    "policy": {"models", "config"},
    "ops": {"models", "config", "engines", "components.providers", "host"},
    "host": {"models"},
    "sandbox": set(),
}
OURS = {layer.split(".")[0] for layer in LAYERS}


def layer_of(module: str) -> str:
    """The layer that a module of ours is in."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "components" else parts[0]


def imports(file: Path) -> set[str]:
    """Modules of ours that a file imports, as layers."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {layer_of(name) for name in names if name.split(".")[0] in OURS} - {"components"}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_what_lies_below_it(layer: str) -> None:
    files = sorted((ROOT / layer.replace(".", "/")).rglob("*.py"))
    assert files
    for file in files:
        wrong = imports(file) - LAYERS[layer] - {layer}
        assert not wrong, f"{file.relative_to(ROOT)} imports {sorted(wrong)}"


def test_models_know_neither_pulumi_nor_the_outside() -> None:
    for file in sorted((ROOT / "models").rglob("*.py")):
        imported = {
            alias.name.split(".")[0]
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import)
            for alias in node.names
        } | {
            node.module.split(".")[0]
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module
        }
        assert not imported & {
            "pulumi",
            "os",
            "pathlib",
            "subprocess",
            "socket",
            "httpx",
            "asyncssh",
        }


def test_product_code_does_not_know_of_the_sandbox() -> None:
    for layer in LAYERS.keys() - {"sandbox"}:
        for file in sorted((ROOT / layer.replace(".", "/")).rglob("*.py")):
            assert "sandbox" not in imports(file), file
