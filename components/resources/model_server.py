"""A server with one model for life: its container, its unit, and that it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_docker as docker
from pulumi_command.remote import Command, Logging

from components.providers.claims import Claims
from components.providers.served_model import ServedModel
from components.providers.vacating import in_its_way
from components.renderers import container, entry, host_setup, server_container, server_setup, unit
from components.resources.access import HostAccess
from components.resources.serving_image import ServingImage
from models.engine import TRAITS
from models.plan import Placement

CANARY_TIMEOUT_S = 60
"""Bound on each answer that decides whether a model serves, in seconds."""


class ModelServer(pulumi.ComponentResource):
    """One server process, pinned to an instance's GPUs, under a unit named after its role."""

    model: ServedModel
    """What it holds."""

    def __init__(
        self,
        placement: Placement,
        access: HostAccess,
        provider: docker.Provider,
        built: Mapping[str, ServingImage],
        stack: str,
        host_stack: str,
        claims: Claims,
        needs: Sequence[pulumi.Resource],
        fallback: Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare a server.

        Args:
            placement: what it holds; it has a server of its own.
            access: how its host is reached.
            provider: Docker there.
            built: reference → image, of those that are built there.
            stack: this stack's name.
            host_stack: `project/stack` that set the host up.
            claims: of its demo on its host.
            needs: what else has to be there before anything of it is.
            fallback: the claim of what serves where it does not, as the ledger has it.
        """
        planned = server_container.planned(placement)
        super().__init__("berth:demo:ModelServer", planned.name, None, opts)
        self._placement = placement
        self._needs = [claims, *needs]
        self._fallback = fallback
        self._planned = planned
        made = self._container(self._image(built, provider), provider, stack)
        installed = self._installed(access)
        self._vacates = vacates(placement, claims)
        script = pulumi.Output.all(made.name, made.id).apply(
            lambda known: server_setup.prepare(placement, known[0], known[1], host_stack)
        )
        self.model = self._model(made, installed, script, access)
        self.register_outputs(
            {
                "host": placement.instance.host_name,
                "gpus": [gpu.uuid for gpu in placement.instance.gpus],
                "state": self.model.state,
            }
        )

    def _child(self, *more: pulumi.Resource, **special: Any) -> pulumi.ResourceOptions:
        """What a component depends on holds for none of its children by itself."""
        return pulumi.ResourceOptions(parent=self, depends_on=[*self._needs, *more], **special)

    def _image(
        self, built: Mapping[str, ServingImage], provider: docker.Provider
    ) -> docker.RemoteImage:
        if self._planned.image in built:
            return built[self._planned.image].image
        return docker.RemoteImage(
            f"{self._placement.instance.host_name}/{self._planned.name}",
            name=self._planned.image,
            keep_locally=True,
            opts=self._child(provider=provider),
        )

    def _container(
        self, image: docker.RemoteImage, provider: docker.Provider, stack: str
    ) -> docker.Container:
        """Made, not started: starting and stopping is the unit's."""
        placement, declared = self._placement, self._placement.instance.declared
        host = placement.instance.host
        program, *arguments = server_container.command(placement)
        request = container.device_request(host, tuple(gpu.uuid for gpu in placement.instance.gpus))
        return docker.Container(
            self._planned.name,
            image=image.image_id,
            entrypoints=[program],
            command=arguments,
            envs=server_container.environment(placement),
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
                for mount in server_container.mounts(placement)
            ],
            ports=[
                docker.ContainerPortArgs(
                    internal=published.inside, external=published.port, ip=published.address
                )
                for published in server_container.published_ports(placement)
            ],
            labels=[
                docker.ContainerLabelArgs(label=label, value=value)
                for label, value in server_container.labels(placement, stack).items()
            ],
            ulimits=[
                docker.ContainerUlimitArgs(name=limit.name, soft=limit.soft, hard=limit.hard)
                for limit in host.ulimits
            ],
            shm_size=declared.shm_size_mib,
            network_mode="bridge",
            restart="no",
            start=False,
            must_run=False,
            log_driver="none",
            capabilities=docker.ContainerCapabilitiesArgs(drops=["ALL"]),
            security_opts=["no-new-privileges:true"],
            destroy_grace_seconds=unit.STOP_TIMEOUT_S,
            opts=self._child(provider=provider),
        )

    def _installed(self, access: HostAccess) -> Command:
        """Unit and files, apart from what starts it: a preview knows all of it."""
        placement, user = self._placement, access.host.ssh.user
        return Command(
            f"{placement.instance.host_name}/{self._planned.name}",
            connection=access.connection(),
            create=host_setup.from_stdin(user),
            stdin=server_setup.install(placement),
            delete=host_setup.as_argument(user, server_setup.uninstall(placement)),
            logging=Logging.NONE,
            add_previous_output_in_env=False,
            opts=self._child(delete_before_replace=True),
        )

    def _model(
        self,
        made: docker.Container,
        installed: Command,
        script: pulumi.Output[str],
        access: HostAccess,
    ) -> ServedModel:
        """Started, and stopped before its container, unit or files become others."""
        placement, catalog = self._placement, self._placement.catalog
        return ServedModel(
            self._planned.name,
            ssh=access.ssh,
            host=placement.instance.host_name,
            unit=self._planned.unit,
            engine=placement.engine,
            port=self._planned.port,
            model=server_container.renderer(placement).served_name(placement),
            incarnation=pulumi.Output.concat(made.id, "/", installed.id, _read_at_start(placement)),
            prepare=script,
            gpus=[gpu.uuid for gpu in placement.instance.gpus],
            claim_mib=placement.claims[0].mib,
            owner=placement.claims[0].owner,
            holder=placement.owner,
            claim_name=placement.claim_name,
            arguments=entry.engine_args(placement),
            load_timeout_s=catalog.load_timeout_s,
            unload_timeout_s=catalog.unload_timeout_s,
            canary_timeout_s=CANARY_TIMEOUT_S,
            roles=placement.roles,
            fallback=self._fallback,
            vacates=self._vacates,
            opts=self._child(installed),
        )


def _read_at_start(placement: Placement) -> str:
    """Changes with the files and repository entries that it runs from: its command line only names
    them, and they are written in place."""
    of_entries = entry.digest(placement) if TRAITS[placement.engine].entry else ""
    known = (server_container.files_digest(placement), of_entries)
    return "".join(f"/{digest}" for digest in known if digest)


def vacates(placement: Placement, claims: Claims) -> pulumi.Output[list[Mapping[str, Any]]]:
    """The claims of what the demo has on a load's GPUs or port; it goes just before that loads."""
    uuids = [gpu.uuid for gpu in placement.instance.gpus]
    port = placement.server.port if placement.server else 0
    return claims.conflicting.apply(
        lambda conflicting: in_its_way(placement.claim_name, uuids, port, conflicting)
    )
