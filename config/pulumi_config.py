"""The stack's config as the Pulumi engine hands it to the program."""

from __future__ import annotations

import json
import os
from typing import Any

import pulumi


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
