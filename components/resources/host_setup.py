"""A host made ready for instances: directories, template unit, control keys, images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_docker as docker
from pulumi_command.remote import Command, Logging

from components.renderers import host_setup
from components.resources.access import HostAccess
from components.resources.serving_image import ImageBuilder, ServingImage
from models.plan import PlannedInstance


class HostSetup(pulumi.ComponentResource):
    """What all instances of a host share, its ledger too. Destroying it leaves the weights."""

    docker_provider: docker.Provider
    images: Mapping[str, docker.RemoteImage]
    """Declared reference → the image on the host; pulled where it is not there, never removed."""
    built: dict[str, ServingImage]
    """Reference → image that is built here, of those that instances run."""

    def __init__(
        self,
        name: str,
        access: HostAccess,
        instances: Sequence[PlannedInstance],
        stack: str,
        builder: ImageBuilder,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("berth:host:HostSetup", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.docker_provider = access.docker(child)
        user = access.host.ssh.user
        Command(
            f"setup-{name}",
            connection=access.connection(),
            create=host_setup.from_stdin(user),
            stdin=host_setup.setup(access.host, instances),
            delete=host_setup.as_argument(user, host_setup.teardown(access.host, stack)),
            logging=Logging.NONE,
            add_previous_output_in_env=False,
            opts=child,
        )
        references = sorted({instance.declared.image for instance in instances})
        self.built = builder.on(access, self.docker_provider, references, child)
        self.images = {reference: each.image for reference, each in self.built.items()} | {
            reference: docker.RemoteImage(
                f"{name}/{reference}",
                name=reference,
                keep_locally=True,
                opts=pulumi.ResourceOptions(parent=self, provider=self.docker_provider),
            )
            for reference in references
            if reference not in self.built
        }
        self.register_outputs({"host": name})
