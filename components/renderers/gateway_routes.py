"""The files that a demo gives the gateway: its routes, and the keys that its engines ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from models.gateway import DemoRoutes

VERSION = 1
"""Of the file's form; `routes.lua` reads just this one."""


def routes(demo: DemoRoutes) -> str:
    """`routes.d/<demo>.json`. It holds no key, only hashes of them."""
    return json.dumps({"version": VERSION, **asdict(demo)}, indent=1, sort_keys=True) + "\n"


def secrets(keys: Mapping[str, str]) -> str:
    """`secrets.d/<demo>.json`: the keys that `Endpoint.key` names. For root's eyes only."""
    return json.dumps(dict(keys), indent=1, sort_keys=True) + "\n"
