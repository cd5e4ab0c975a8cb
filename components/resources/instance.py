"""A Triton instance: its container and its unit."""

from __future__ import annotations

import hashlib

import pulumi
import pulumi_docker as docker
from pulumi_command.remote import Command, Logging

from components.providers.running_unit import RunningUnit
from components.renderers import container, host_guard, host_setup, unit
from components.resources.access import HostAccess
from components.resources.host_setup import HostSetup
from models.plan import PlannedInstance


class TritonInstance(pulumi.ComponentResource):
    """One server process, pinned to its GPUs, under its own systemd unit."""

    incarnation: pulumi.Output[str]
    """Changes whenever the server is another process that holds no models yet."""
    setup: HostSetup
    state: pulumi.Output[str]
    """The unit's state."""

    def __init__(
        self,
        planned: PlannedInstance,
        access: HostAccess,
        setup: HostSetup,
        stack: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("berth:host:TritonInstance", planned.name, None, opts)
        self._planned = planned
        self.setup = setup
        made = self._container(setup.images[planned.declared.image], stack)
        running = self._unit(made, access, host_guard.host_stack(stack))
        template = hashlib.sha256(unit.template(planned.host).encode()).hexdigest()[:12]
        self.incarnation = pulumi.Output.concat(made.id, "/", template)
        self.state = running.state
        self.register_outputs(
            {
                "host": planned.host_name,
                "gpus": [gpu.uuid for gpu in planned.gpus],
                "incarnation": self.incarnation,
                "state": self.state,
            }
        )

    def _child(self, special: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
        common = pulumi.ResourceOptions(parent=self, depends_on=[self.setup])
        return pulumi.ResourceOptions.merge(common, special)

    def _container(self, image: docker.RemoteImage, stack: str) -> docker.Container:
        """Made, not started: starting and stopping is the unit's."""
        planned = self._planned
        uuids = tuple(gpu.uuid for gpu in planned.gpus)
        request = container.device_request(planned.host, uuids)
        return docker.Container(
            container.container_name(planned),
            image=image.image_id,
            command=container.command(planned),
            envs=container.environment(planned),
            device_requests=[
                docker.ContainerDeviceRequestArgs(
                    driver=request.driver,
                    device_ids=list(request.device_ids),
                    capabilities=list(request.capabilities) or None,
                )
            ],
            mounts=[
                docker.ContainerMountArgs(
                    type="bind",
                    target=mount.target,
                    source=mount.source,
                    read_only=mount.read_only,
                )
                for mount in container.mounts(planned)
            ],
            ports=[
                docker.ContainerPortArgs(
                    internal=published.inside, external=published.port, ip=published.address
                )
                for published in container.published_ports(planned)
            ],
            labels=[
                docker.ContainerLabelArgs(label=label, value=value)
                for label, value in container.labels(planned, stack).items()
            ],
            ulimits=[
                docker.ContainerUlimitArgs(name=limit.name, soft=limit.soft, hard=limit.hard)
                for limit in planned.host.ulimits
            ],
            shm_size=planned.declared.shm_size_mib,
            network_mode="bridge",
            restart="no",
            start=False,
            must_run=False,
            log_driver="none",
            capabilities=docker.ContainerCapabilitiesArgs(drops=["ALL"]),
            security_opts=["no-new-privileges:true"],
            destroy_grace_seconds=planned.declared.stop_timeout_s,
            opts=self._child(pulumi.ResourceOptions(provider=self.setup.docker_provider)),
        )

    def _unit(self, made: docker.Container, access: HostAccess, host_stack: str) -> RunningUnit:
        """Installed and started by a Command; watched, and started again, by a RunningUnit.

        The Command is replaced, the old unit stopped first, when the container or the template
        unit is another.
        """
        planned = self._planned
        user = access.host.ssh.user
        script = pulumi.Output.all(made.name, made.id).apply(
            lambda known: (
                host_setup.preamble(planned, known[0], known[1], host_stack)
                + host_setup.start_instance(planned)
            )
        )
        installed = Command(
            planned.unit,
            connection=access.connection(),
            create=host_setup.from_stdin(user),
            stdin=script,
            delete=host_setup.as_argument(user, host_setup.stop_instance(planned)),
            triggers=[made.id, unit.template(planned.host)],
            logging=Logging.NONE,
            add_previous_output_in_env=False,
            opts=self._child(pulumi.ResourceOptions(delete_before_replace=True)),
        )
        return RunningUnit(
            planned.unit,
            ssh=access.ssh,
            host=planned.host_name,
            unit=planned.unit,
            script=script,
            opts=self._child(pulumi.ResourceOptions(depends_on=[installed])),
        )
