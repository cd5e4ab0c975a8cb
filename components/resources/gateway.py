"""A host's gateway: nginx under a unit of its own, and the adapter beside it."""

from __future__ import annotations

import pulumi
from pulumi_command.remote import Command, Logging

from components.providers.running_unit import RunningUnit
from components.renderers import gateway_setup, gateway_unit, host_service
from components.renderers import host_setup as host_scripts
from components.resources.access import HostAccess
from components.resources.adapter import HostAdapter
from components.resources.host_setup import HostSetup
from models.gateway import Gateway


class HostGateway(pulumi.ComponentResource):
    """Where clients reach the roles on a host; demos put their routes there."""

    state: pulumi.Output[str]
    """The unit's state."""
    certificate: pulumi.Output[str]
    """The self-signed certificate as PEM; empty for one of the host's own, and without TLS."""
    adapter: HostAdapter | None
    url: str

    def __init__(
        self,
        declared: Gateway,
        access: HostAccess,
        setup: HostSetup,
        stack: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("berth:host:HostGateway", access.name, None, opts)
        self._access = access
        self._setup = setup
        self.url = declared.reached_at(access.host.ssh.address)
        installed = self._installed(declared, stack)
        self.certificate = installed.stdout
        running = RunningUnit(
            f"{access.name}/{gateway_unit.NAME}",
            ssh=access.ssh,
            host=access.name,
            unit=gateway_unit.NAME,
            script=gateway_setup.start(),
            opts=self._child(installed),
        )
        self.state = running.state
        made: list[pulumi.Resource] = [running]
        self.adapter = None
        if declared.adapter is not None:
            self.adapter = HostAdapter(
                declared,
                declared.adapter,
                access,
                setup,
                stack,
                pulumi.ResourceOptions(parent=self),
            )
            made.append(self.adapter)
        self._guard(made)
        self.register_outputs({"host": access.name, "url": self.url, "state": self.state})

    def _child(self, *needs: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=[self._setup, *needs])

    def _installed(self, declared: Gateway, stack: str) -> Command:
        """Packages, configuration and unit. What changes is a reload; no stream is cut for it."""
        host = self._access.host
        user = host.ssh.user
        gateway = declared.called(host.ssh.address)
        return Command(
            f"gateway-{self._access.name}",
            connection=self._access.connection(),
            create=host_scripts.from_stdin(user),
            stdin=host_service.noted(gateway_unit.STEM, declared.port, stack)
            + gateway_setup.setup(gateway, host.restart),
            delete=host_scripts.as_argument(
                user, gateway_setup.teardown() + host_service.forgotten(gateway_unit.STEM)
            ),
            logging=Logging.NONE,
            add_previous_output_in_env=False,
            opts=self._child(),
        )

    def _guard(self, made: list[pulumi.Resource]) -> None:
        """Made last, so deleted first: demos' routes are told of before anything is stopped."""
        user = self._access.host.ssh.user
        Command(
            f"guard-gateway-{self._access.name}",
            connection=self._access.connection(),
            create="true",
            delete=host_scripts.as_argument(user, gateway_setup.unused()),
            logging=Logging.NONE,
            add_previous_output_in_env=False,
            opts=self._child(*made),
        )
