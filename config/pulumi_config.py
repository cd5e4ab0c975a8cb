"""The stack's config as the Pulumi engine hands it to the program."""

from __future__ import annotations

import json
import os
from typing import Any

import pulumi

from models.flat import flat


def sections() -> dict[str, Any]:
    """All `<project>:` keys as plain data, misspelt ones included, so that they can be refused."""
    given: dict[str, str] = json.loads(os.environ.get("PULUMI_CONFIG", "{}"))
    prefix = f"{pulumi.get_project()}:"
    return {
        key.removeprefix(prefix): _plain(value)
        for key, value in given.items()
        if key.startswith(prefix)
    }


def _plain(value: str) -> Any:
    """Maps and lists arrive as JSON, scalars as they were written."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def plain() -> dict[str, Any]:
    """Path → scalar of the whole config that is not encrypted, whatever it belongs to.

    A key that holds a secret anywhere counts as encrypted (`PULUMI_CONFIG_SECRET_KEYS`).
    """
    given: dict[str, str] = json.loads(os.environ.get("PULUMI_CONFIG", "{}"))
    secret = set(json.loads(os.environ.get("PULUMI_CONFIG_SECRET_KEYS", "[]")))
    found: dict[str, Any] = {}
    for key, value in given.items():
        if key not in secret:
            space, _, name = key.partition(":")
            found |= dict(flat({name: _plain(value)}, f"{space}:"))
    return found
