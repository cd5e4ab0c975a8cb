"""A demo: a named set of roles."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from models.engine import Engine
from models.scalars import Declared, InstanceName, ModelName, Name, Port


class Fallback(Declared):
    """What serves a role where its own model fails to load, or fails its canary."""

    model: ModelName
    """A model of the catalog."""
    instance: InstanceName | None = None
    """The instance that holds it then. Unset: the role's own."""
    engine: Engine | None = None
    """What serves it: one that Triton loads on demand. Unset: what the catalog says."""


class Role(Declared):
    """A name that clients call, and the model on an instance that answers to it."""

    model: ModelName
    """A model of the catalog."""
    instance: InstanceName
    """The instance that holds it. Roles that name the same model and instance share one load. An
    engine with one model for life has a server of its own on this instance's GPUs."""
    engine: Engine | None = None
    """What serves it. Unset: what the catalog says."""
    port: Port | None = None
    """Port of its own server on the host's loopback, for an engine with one model for life. Unset:
    200 above the instance's `http_port`."""
    replicas: list[InstanceName] = []
    """Further instances of the same host that hold the model too: each request goes to the one with
    the fewest under way."""
    fallback: Fallback | None = None
    """What serves where this model fails. Its memory is claimed with the role's from the beginning,
    on the same GPUs or on others. Roles that share one load name the same."""


class Demo(Declared):
    """What one demo serves."""

    name: Name
    """Name of the demo; first part of the names of its repository entries."""
    roles: Annotated[dict[Name, Role], Field(min_length=1)]
    """Role → model on an instance."""
    keys: Annotated[list[Name], Field(min_length=1)] = ["default"]
    """Names of the keys that open its roles at the gateway. Each is made at random when it is first
    declared; `berth key` prints it. To change one: declare another, move clients, drop the old."""
    connections_per_key: int | None = Field(default=None, ge=1)
    """Requests that one key may have under way at once. Unset: what the host's gateway says."""
