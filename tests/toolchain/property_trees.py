"""Property names as trees: what an SDK's arguments send, and what a plugin takes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, get_args

from pulumi._types import input_type_types, is_input_type

from tests.toolchain.conftest import Toolchain

Tree = dict[str, Any]


def sent_by(arguments: type) -> Tree:
    """Wire names of all that an SDK's argument class can send."""
    return {name: _nested(annotation) for name, annotation in input_type_types(arguments).items()}


def _nested(annotation: Any) -> Tree:
    if isinstance(annotation, type) and is_input_type(annotation):
        return sent_by(annotation)
    tree: Tree = {}
    for inner in get_args(annotation):
        tree |= _nested(inner)
    return tree


def taken_by(toolchain: Toolchain, package: str, version: str, cwd: Path) -> dict[str, Tree]:
    """Wire names of what a plugin's resources take, by token."""
    own = toolchain.home and (
        toolchain.home / f"plugins/resource-{package}-v{version}/pulumi-resource-{package}"
    )
    if own and package == "docker":
        # Built without the generated schema; it tells the names from the provider it bridges.
        told = subprocess.run(
            [own, "--properties"], capture_output=True, text=True, timeout=60, check=True
        )
        return {token: tree["inputs"] for token, tree in json.loads(told.stdout).items()}
    source = package if own else f"{package}@{version}"
    asked = toolchain.run("package", "get-schema", source, cwd=cwd)
    assert asked.returncode == 0, asked.stderr
    schema = json.loads(asked.stdout)
    resources = {
        **schema["resources"],
        f"pulumi:providers:{package}": schema.get("provider", {}),
    }
    return {token: _inputs(schema, spec) for token, spec in resources.items()}


def _inputs(schema: dict[str, Any], spec: dict[str, Any]) -> Tree:
    return {name: _below(schema, value) for name, value in spec.get("inputProperties", {}).items()}


def _below(schema: dict[str, Any], value: dict[str, Any]) -> Tree:
    tree: Tree = {}
    reference = str(value.get("$ref", ""))
    if reference.startswith("#/types/"):
        found = schema["types"][reference.removeprefix("#/types/").replace("%2F", "/")]
        for name, inner in found.get("properties", {}).items():
            tree[name] = _below(schema, inner)
    for key in ("items", "additionalProperties"):
        if key in value:
            tree |= _below(schema, value[key])
    for inner in value.get("oneOf", []):
        tree |= _below(schema, inner)
    return tree


def missing(sent: Tree, taken: Tree, path: str = "") -> list[str]:
    """Dotted names that are sent and not taken."""
    found: list[str] = []
    for name, below in sent.items():
        if name not in taken:
            found.append(path + name)
        else:
            found += missing(below, taken[name], f"{path}{name}.")
    return found
