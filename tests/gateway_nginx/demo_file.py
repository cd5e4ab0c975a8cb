"""A demo's file as a whole, for tests that write it themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from models.gateway import RoleRoute


@dataclass(frozen=True)
class DemoKey:
    """A key of a demo, as the host knows it."""

    name: str
    sha256: str
    """`key_hash` of the key."""


@dataclass(frozen=True)
class DemoRoutes:
    """Everything that one demo gives the gateway."""

    demo: str
    keys: tuple[DemoKey, ...]
    roles: Mapping[str, RoleRoute]
    connections_per_key: int | None = None
    """Its own limit; None: the host's."""


def routes(demo: DemoRoutes) -> str:
    """`routes.d/<demo>.json`."""
    return json.dumps({"version": 1, **asdict(demo)}, indent=1, sort_keys=True) + "\n"
