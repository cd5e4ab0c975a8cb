"""Refuses the destruction of a host while other stacks' demos stand on it."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
from pulumi_command.remote import Command, Logging

from components.renderers import host_guard, host_setup
from components.resources.access import HostAccess
from components.resources.failed import Settling, there


class HostGuard(pulumi.ComponentResource):
    """Made after everything else on a host, so deleted before it: its refusal comes in time."""

    def __init__(
        self,
        name: str,
        access: HostAccess,
        stack: str,
        everything: Sequence[pulumi.Resource],
        late: Sequence[Settling],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("berth:host:HostGuard", name, None, opts)
        script = host_guard.nobody_else(access.host, stack)
        Command(
            f"guard-{name}",
            connection=access.connection(),
            create="true",
            delete=host_setup.as_argument(access.host.ssh.user, script),
            logging=Logging.NONE,
            add_previous_output_in_env=False,
            opts=pulumi.ResourceOptions(parent=self, depends_on=there(everything, late)),
        )
        self.register_outputs({"host": name})
