"""The container of a server of one model's own: pinned to its GPUs, open on loopback alone."""

from __future__ import annotations

import hashlib
import json

from components.renderers.container import PublishedPort
from components.renderers.engines import SERVERS, ServerRenderer
from models.instance import LOOPBACK, Mount
from models.plan import Placement, PlannedServer


def planned(placement: Placement) -> PlannedServer:
    """The server of a load that has one of its own."""
    assert placement.server is not None  # noqa: S101 - only such a load gets a container
    return placement.server


def renderer(placement: Placement) -> ServerRenderer:
    """Its engine's."""
    return SERVERS[placement.engine]


def command(placement: Placement) -> list[str]:
    """What runs in the container, in place of the image's entry point."""
    return list(renderer(placement).command(placement))


def environment(placement: Placement) -> list[str]:
    """The engine's variables, and those declared for the instance whose GPUs it has."""
    declared = placement.instance.declared.environment
    merged = {**renderer(placement).environment(placement), **declared}
    return [f"{name}={value}" for name, value in sorted(merged.items())]


def files_digest(placement: Placement) -> str:
    """Of the files that it reads once, at its start; empty where it reads none."""
    files = dict(renderer(placement).files(placement))
    if not files:
        return ""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]


def mounts(placement: Placement) -> list[Mount]:
    """Weights and repository, read-only; files of its own; what is declared for the instance."""
    host = placement.instance.host
    own = [host.weights, host.repository, *sorted(renderer(placement).files(placement))]
    ours = [Mount(source=path, target=path) for path in own]
    return [*ours, *placement.instance.declared.mounts]


def published_ports(placement: Placement) -> list[PublishedPort]:
    """One port for everything; engines ask for no key, so it never leaves loopback."""
    return [PublishedPort(LOOPBACK, planned(placement).port, renderer(placement).INSIDE)]


def labels(placement: Placement, stack: str) -> dict[str, str]:
    """How Berth knows its own containers again."""
    return {
        "berth.stack": stack,
        "berth.instance": planned(placement).name,
        "berth.role": min(placement.roles),
    }
