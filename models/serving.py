"""Servers of one model's own: which unit, image and port a role's engine comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from models.build import PlannedBuild, resolved
from models.catalog import CatalogModel
from models.engine import TRAITS, Engine
from models.finding import UNTOUCHED
from models.plan import PlannedInstance, PlannedServer
from models.refusal import Refusal
from models.stack import StackConfig

ABOVE = 200
"""How far above its instance's HTTP port a server's own lies, unless a role says otherwise."""


def planned_server(
    config: StackConfig,
    base: StackConfig,
    roles: Sequence[str],
    engine: Engine,
    model: CatalogModel,
    instance: PlannedInstance,
    builds: Mapping[str, PlannedBuild],
) -> tuple[PlannedServer | None, list[Refusal]]:
    """The server of a load, None for an engine in Triton, and what is wrong with it.

    Args:
        config: the demo's sections.
        base: the sections that declare hosts, which may be the same.
        roles: names of the roles that share the load.
        engine: what serves it.
        model: its catalog entry.
        instance: whose GPUs it takes.
        builds: name → build.
    """
    assert config.demo is not None  # noqa: S101 - the roles are its
    first = min(roles)
    at = f"berth:demo.roles.{first}"
    ports = {port for role in roles if (port := config.demo.roles[role].port)}
    if not TRAITS[engine].for_life:
        return None, _superfluous(ports, engine, at)
    refusals = []
    image = model.image or config.images.get(engine) or base.images.get(engine)
    if image is None:
        refusals.append(
            Refusal(
                f"no image for engine `{engine}`",
                consequence=UNTOUCHED,
                fix=f"set `berth:images.{engine}`, or `image` in the model's catalog entry.",
                at=f"{at}.engine",
            )
        )
    else:
        try:
            image = resolved(image, builds, _image_at(config, roles, engine, model))
        except Refusal as refusal:
            refusals.append(refusal)
    if len(ports) > 1:
        refusals.append(
            Refusal(
                f"{' and '.join(sorted(roles))} share one server and name ports "
                f"{' and '.join(map(str, sorted(ports)))}",
                consequence=UNTOUCHED,
                fix="give `port` to one of them, or the same to all.",
                at=f"{at}.port",
            )
        )
    port = min(ports) if ports else instance.declared.http_port + ABOVE
    name = f"{config.demo.name}-{first}"
    if config.demo.roles[first].instance != instance.name:
        name += f"-{instance.id}"  # a further replica of the role
    return PlannedServer(name, image or "", port), refusals


def _image_at(
    config: StackConfig, roles: Sequence[str], engine: Engine, model: CatalogModel
) -> str:
    """Where a server's image is declared."""
    if model.image:
        assert config.demo is not None  # noqa: S101 - the roles are its
        return f"catalog/{config.demo.roles[roles[0]].model}.yaml: image"
    elsewhere = config.host_stack if engine not in config.images else None
    return f"{f'Pulumi.{elsewhere}.yaml: ' if elsewhere else ''}berth:images.{engine}"


def _superfluous(ports: set[int], engine: Engine, at: str) -> list[Refusal]:
    """What would be silently ignored."""
    return [
        Refusal(
            f"`port: {port}` is for engines with a server of their own; Triton serves `{engine}`",
            consequence=UNTOUCHED,
            fix="leave it out.",
            at=f"{at}.port",
        )
        for port in sorted(ports)
    ]
