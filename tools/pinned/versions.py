"""Reads versions.env, the one home of the versions that the tools use."""

from __future__ import annotations

import re
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent

Version = tuple[int, ...]


def pins() -> dict[str, str]:
    lines = (TOOLS / "versions.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def parsed(text: str) -> Version:
    """The leading numbers of `v3.259.0`, `go1.26.8` or `3.272.0-alpha.1`."""
    found = re.search(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
