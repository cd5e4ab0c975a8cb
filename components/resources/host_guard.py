"""Refuses the destruction of a host while other stacks' demos stand on it."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
from pulumi_command.remote import Command, Logging

from components.providers.served_model import ServedModel
from components.providers.triton_model import TritonModel
from components.renderers import host_guard, host_setup
from components.resources.access import HostAccess


class HostGuard(pulumi.ComponentResource):
    """Made after everything else on a host, so deleted before it: its refusal comes in time."""

    def __init__(
        self,
        name: str,
        access: HostAccess,
        stack: str,
        everything: Sequence[pulumi.Resource],
        models: Sequence[TritonModel | ServedModel],
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
            opts=pulumi.ResourceOptions(parent=self, depends_on=_there(everything, models)),
        )
        self.register_outputs({"host": name})


def _there(
    everything: Sequence[pulumi.Resource], models: Sequence[TritonModel | ServedModel]
) -> pulumi.Output[list[pulumi.Resource]]:
    """All of it but models that failed in this run.

    What depends on a failed resource is skipped with all its former dependencies. One of those may
    be deleted in the same run (`--continue-on-error`), and the engine then refuses the whole state
    for naming a resource that it does not hold (seen with Pulumi 3.259).
    """

    async def known() -> list[pulumi.Resource]:
        return [*everything, *[model for model in models if await model.state.is_known()]]

    return pulumi.Output.from_input(known())
