"""What one stack declares: the sections of its config."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from models.build import Build
from models.demo import Demo
from models.engine import Engine
from models.host import Host
from models.instance import Instance
from models.scalars import Declared, InstanceName, Name


class StackConfig(Declared):
    """The sections under `berth:` in `Pulumi.<stack>.yaml`.

    A host stack has `hosts` and `instances`; a demo stack `host_stack` and `demo`; a stack that is
    both at once has `hosts`, `instances` and `demo`.
    """

    hosts: dict[Name, Host] = {}
    """GPU machines, by name."""
    instances: dict[InstanceName, Instance] = {}
    """Servers on them. The name is the unit's, so it is unique across the stack's hosts."""
    images: dict[Engine, Annotated[str, Field(min_length=1)]] = {}
    """Engine → image of its servers, for engines with one model for life, by digest or as
    `build:<name>`. A demo stack's own go before its host stack's."""
    builds: dict[Name, Build] = {}
    """Images that are built on their hosts, by the name that `build:<name>` refers to. A demo
    stack's own go before its host stack's."""
    host_stack: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")] | None = None
    """The stack that set up the hosts this demo uses: its `Pulumi.<host_stack>.yaml` is read."""
    inventory: Literal["live", "recorded"] = "live"
    """Where a preview learns of the hosts: from themselves, or from `inventory/<host>.json`, which
    `berth discover HOST` writes. Whatever changes a host asks it itself."""
    demo: Demo | None = None
    """The demo that this stack serves."""

    @model_validator(mode="after")
    def _sections_that_go_together(self) -> Self:
        if self.host_stack is not None and (self.hosts or self.instances):
            raise ValueError(
                "`host_stack` takes hosts and instances from another stack's config; this one "
                "declares its own too. Keep `host_stack` or `hosts` and `instances`, not both"
            )
        if self.host_stack is not None and self.demo is None:
            raise ValueError("`host_stack` without `demo` declares nothing: add the demo's roles")
        if not (self.hosts or self.host_stack):
            raise ValueError("no `hosts` and no `host_stack`: nothing says where anything runs")
        return self
