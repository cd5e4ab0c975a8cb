"""A host's adapter: its image, its container and its unit."""

from __future__ import annotations

import pulumi
import pulumi_docker as docker
from pulumi_command.remote import Command, Logging

from components.providers.running_unit import RunningUnit
from components.renderers import adapter_container, adapter_setup, adapter_unit, host_service
from components.renderers import host_setup as host_scripts
from components.resources.access import HostAccess
from components.resources.host_setup import HostSetup
from models.gateway import Adapter, Gateway


class HostAdapter(pulumi.ComponentResource):
    """The adapter service on a host; demos put their routes beside its configuration."""

    state: pulumi.Output[str]
    """The unit's state."""

    def __init__(
        self,
        gateway: Gateway,
        adapter: Adapter,
        access: HostAccess,
        setup: HostSetup,
        stack: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("berth:host:HostAdapter", access.name, None, opts)
        self._adapter = adapter
        self._access = access
        self._setup = setup
        user = access.host.ssh.user
        installed = Command(
            f"adapter-{access.name}",
            connection=access.connection(),
            create=host_scripts.from_stdin(user),
            stdin=host_service.noted(adapter_unit.STEM, adapter.port, stack)
            + adapter_setup.install(gateway, adapter, access.host.restart),
            delete=host_scripts.as_argument(
                user, adapter_setup.uninstall() + host_service.forgotten(adapter_unit.STEM)
            ),
            logging=Logging.NONE,
            add_previous_output_in_env=False,
            opts=self._child(),
        )
        # Its directory is there before it: Docker makes none for a mount.
        made = self._container(stack, installed)
        running = self._unit(made, installed)
        self.state = running.state
        # Made last, so deleted first: demos' routes are told of before anything is stopped.
        Command(
            f"guard-adapter-{access.name}",
            connection=access.connection(),
            create="true",
            delete=host_scripts.as_argument(user, adapter_setup.unused()),
            logging=Logging.NONE,
            add_previous_output_in_env=False,
            opts=self._child(running),
        )
        self.register_outputs({"host": access.name, "state": self.state})

    def _child(
        self, *needs: pulumi.Resource, provider: pulumi.ProviderResource | None = None
    ) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            parent=self, depends_on=[self._setup, *needs], provider=provider
        )

    def _container(self, stack: str, installed: Command) -> docker.Container:
        """Made, not started: starting and stopping is the unit's."""
        host, provider = self._access.host, self._setup.docker_provider
        image = docker.RemoteImage(
            f"{self._access.name}/{adapter_unit.STEM}",
            name=self._adapter.image,
            keep_locally=True,
            opts=self._child(provider=provider),
        )
        return docker.Container(
            f"{adapter_unit.STEM}-{self._access.name}",
            image=image.image_id,
            entrypoints=list(adapter_container.ENTRY),
            command=list(adapter_container.COMMAND),
            user=f"{adapter_container.UID}:{adapter_container.UID}",
            mounts=[
                docker.ContainerMountArgs(
                    type="bind",
                    target=mount.target,
                    source=mount.source,
                    read_only=mount.read_only,
                )
                for mount in adapter_container.mounts(host)
            ],
            labels=[
                docker.ContainerLabelArgs(label=label, value=value)
                for label, value in adapter_container.labels(adapter_unit.STEM, stack).items()
            ],
            memory=self._adapter.memory_mib,
            memory_swap=self._adapter.memory_mib,  # Both together: no swap.
            network_mode="host",
            read_only=True,
            restart="no",
            start=False,
            must_run=False,
            log_driver="none",
            capabilities=docker.ContainerCapabilitiesArgs(drops=["ALL"]),
            security_opts=["no-new-privileges:true"],
            destroy_grace_seconds=adapter_unit.STOP_S,
            opts=self._child(installed, provider=provider),
        )

    def _unit(self, made: docker.Container, installed: Command) -> RunningUnit:
        """Started by a Command, which is replaced, the old unit stopped first, when its container,
        its unit or its port is another; watched, and started again, by a RunningUnit."""
        access, adapter = self._access, self._adapter
        user, name = access.host.ssh.user, f"{access.name}/{adapter_unit.NAME}"
        script = pulumi.Output.all(made.name, made.id).apply(
            lambda known: (
                adapter_setup.preamble(known[0], known[1]) + adapter_setup.start(adapter.port)
            )
        )
        started = Command(
            name,
            connection=access.connection(),
            create=host_scripts.from_stdin(user),
            stdin=script,
            delete=host_scripts.as_argument(user, adapter_setup.stop()),
            triggers=[made.id, adapter_unit.text(access.host.restart), adapter.port],
            logging=Logging.NONE,
            add_previous_output_in_env=False,
            opts=pulumi.ResourceOptions.merge(
                self._child(installed), pulumi.ResourceOptions(delete_before_replace=True)
            ),
        )
        return RunningUnit(
            name,
            ssh=access.ssh,
            host=access.name,
            unit=adapter_unit.NAME,
            script=script,
            opts=self._child(started),
        )
