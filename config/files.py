"""The declared files: a stack's config, and the catalog that all stacks share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from models.catalog import CatalogModel
from models.refusal import Refusal
from models.scalars import ModelName
from models.validation import parse

PREFIX = "berth:"


def read_yaml(path: Path) -> Any:
    """A YAML file's content, or a Refusal that names the file and the line."""
    try:
        return yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise Refusal(
            "no such file", consequence="Nothing was touched.", fix="create it.", at=path.name
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise Refusal(
            f"not readable as YAML: {reason}", consequence="Nothing was touched.", at=path.name
        ) from None


def stack_sections(project: Path, stack: str) -> dict[str, Any]:
    """The `berth:` sections of `Pulumi.<stack>.yaml`, as plain data."""
    path = project / f"Pulumi.{stack}.yaml"
    content = read_yaml(path) or {}
    config = content.get("config") or {} if isinstance(content, dict) else {}
    return {key.removeprefix(PREFIX): config[key] for key in config if key.startswith(PREFIX)}


def stack_names(project: Path) -> list[str]:
    """The stacks that have a config here, sorted."""
    return sorted(path.name.split(".")[1] for path in project.glob("Pulumi.*.yaml"))


def load_catalog(directory: Path, names: Iterable[str]) -> dict[str, CatalogModel]:
    """The named catalog entries, each from `<name>.yaml`.

    A name without a file is left out: who uses the name says so, with its own path.
    """
    return {
        name: parse(CatalogModel, read_yaml(directory / f"{name}.yaml"), f"catalog/{name}.yaml")
        for name in names
        if (directory / f"{name}.yaml").is_file()
    }


def readable_catalog(directory: Path) -> dict[str, CatalogModel]:
    """Every entry that can be read. One that is broken and not used is nobody's trouble now."""
    found: dict[str, CatalogModel] = {}
    for path in sorted(directory.glob("*.yaml")):
        with contextlib.suppress(Refusal):
            found |= load_catalog(directory, [path.stem])
    return found


def catalog_names(directory: Path) -> list[str]:
    """All names that the catalog holds, sorted."""
    names = sorted(path.stem for path in directory.glob("*.yaml"))
    for name in names:
        try:
            TypeAdapter(ModelName).validate_python(name)
        except ValidationError:
            raise Refusal(
                "a catalog file's name is the model's: lower-case letters, digits, `.`, `_`, `-`",
                consequence="The model could not be named in a URL.",
                fix="rename the file.",
                at=f"catalog/{name}.yaml",
            ) from None
    return names
