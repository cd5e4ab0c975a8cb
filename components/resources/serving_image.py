"""An image that is built on a host from the project's Dockerfile, and found good for its models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_docker as docker
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import monitor_supports_feature

from components.providers import build_failure
from components.providers.image_versions import ImageVersions
from components.resources.access import HostAccess
from models.build import PlannedBuild
from models.plan import Plan
from models.refusal import Refusal
from models.releases.packed import packed
from models.releases.tables import Releases

TIMEOUT = "2h"
"""Bound on a build, its base image's pull included."""


class ServingImage(pulumi.ComponentResource):
    """Built once per host, however many roles use it. Its images stay when it goes."""

    name: str
    """`<host>/<build>`."""
    image: docker.RemoteImage
    """Its id is what containers are made from."""
    versions: ImageVersions
    """What is stopped or loaded for it waits for this."""

    def __init__(
        self,
        build: PlannedBuild,
        access: HostAccess,
        provider: docker.Provider,
        plan: Plan,
        releases: Releases,
        project: Path,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare a build on a host.

        Args:
            build: what is built.
            access: how the host is reached.
            provider: Docker there.
            plan: which models it is to run.
            releases: the tables it is judged by.
            project: the directory that its context is in.
        """
        self.name = name = f"{access.name}/{build.name}"
        super().__init__("berth:host:ServingImage", name, None, opts)
        # BuildKit over the provider's own connection: what the plugin calls the legacy builder.
        # Its other one builds with the Docker of this machine, and writes into the user's home.
        self.image = docker.RemoteImage(
            name,
            name=build.reference,
            keep_locally=True,
            build=docker.RemoteImageBuildArgs(
                context=build.context,
                dockerfile=build.dockerfile,
                build_args=dict(build.args),
                use_legacy_builder=True,
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                provider=provider,
                custom_timeouts=pulumi.CustomTimeouts(create=TIMEOUT),
                hooks=_told_plainly(build, access, project),
            ),
        )
        self.versions = ImageVersions(
            name,
            ssh=access.ssh,
            host=access.name,
            data_dir=access.host.data_dir,
            build=build.name,
            reference=build.reference,
            image=self.image.image_id,
            bases=build.bases,
            declared=build.versions,
            models=_models(plan, access.name, build.reference),
            tables=packed(releases),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"host": access.name, "versions": self.versions.versions})


def _models(plan: Plan, host: str, reference: str) -> dict[str, str]:
    """Model → weights directory, of all that the image is to run on a host."""
    return {
        load.model: load.catalog.weights
        for load in plan.placements_on(host)
        if (load.server.image if load.server else load.instance.declared.image) == reference
    }


def _told_plainly(
    build: PlannedBuild, access: HostAccess, project: Path
) -> pulumi.ResourceHookBinding | None:
    """A failed build told in plain words too; where the engine is too old, in the plugin's only."""
    known = monitor_supports_feature(resource_pb2.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS)
    if not known:
        return None

    async def failed(args: pulumi.ErrorHookArgs) -> bool:
        try:
            heard = await asyncio.to_thread(build_failure.heard_again, access.ssh, project, build)
        except Refusal:
            heard = ""  # What the plugin said is known all the same.
        said = args.errors[0] if args.errors else ""
        pulumi.log.error(str(build_failure.refusal(build, access.name, said, heard)))
        return False

    return pulumi.ResourceHookBinding(
        on_error=[pulumi.ErrorHook(f"build-{access.name}-{build.name}", failed)]
    )


@dataclass(frozen=True)
class ImageBuilder:
    """Declares a stack's builds, host by host."""

    plan: Plan
    releases: Releases
    project: Path

    def on(
        self,
        access: HostAccess,
        provider: docker.Provider,
        images: Iterable[str],
        opts: pulumi.ResourceOptions,
    ) -> dict[str, ServingImage]:
        """Reference → build, of those images that are built; to be asked once for each host."""
        return {
            image: ServingImage(
                self.plan.builds[image],
                access,
                provider,
                self.plan,
                self.releases,
                self.project,
                opts,
            )
            for image in sorted(set(images) & set(self.plan.builds))
        }
