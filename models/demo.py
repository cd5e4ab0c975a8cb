"""A demo: a named set of roles."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from models.engine import Engine
from models.scalars import Declared, InstanceName, ModelName, Name, Port


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


class Demo(Declared):
    """What one demo serves."""

    name: Name
    """Name of the demo; first part of the names of its repository entries."""
    roles: Annotated[dict[Name, Role], Field(min_length=1)]
    """Role → model on an instance."""
