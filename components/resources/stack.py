"""A stack: composes the sections that its config holds, and says what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pulumi

from components.renderers.host_guard import host_stack
from components.resources.access import HostAccess
from components.resources.demo import Demo
from components.resources.host_guard import HostGuard
from components.resources.host_setup import HostSetup
from components.resources.instance import TritonInstance
from components.resources.serving_image import ImageBuilder, ServingImage
from components.resources.unseen_keys import let_keys_be
from models.plan import Placement, Plan
from models.releases.tables import NO_TABLES, Releases


def compose(
    plan: Plan, project: Path, *, asked: bool = True, releases: Releases = NO_TABLES
) -> dict[str, object]:
    """Declare every resource of a stack.

    Args:
        asked: whether hosts are to be reached; a preview with recorded inventories reaches none.
        releases: the tables by which images that are built here are judged.

    Returns:
        The stack's outputs: `instances`, `models`, `roles` and `builds`, each by name.

    Raises:
        Refusal: if a declared key file is missing.
    """
    access = {
        name: HostAccess.of(project, name, host, asked=asked) for name, host in plan.hosts.items()
    }
    if not asked:
        let_keys_be(access.values())
    builder = ImageBuilder(plan, releases, project)
    instances = _instances(plan, access, builder) if plan.owns_hosts else {}
    demo = Demo(plan, access, instances, builder) if plan.demo else None
    if plan.owns_hosts:
        for name, reached in access.items():
            made: list[pulumi.Resource] = [instances[i.name] for i in plan.instances_on(name)]
            everything = [*made, demo] if demo else made
            HostGuard(name, reached, host_stack(plan.stack), everything)
    states = demo.states if demo else {}
    return {
        "instances": _instance_outputs(plan, instances),
        "models": _model_outputs(plan, states),
        "roles": _role_outputs(plan, states),
        "builds": _build_outputs(
            [
                *(each.setup.built for each in instances.values()),
                *(demo.built.values() if demo else []),
            ]
        ),
    }


def _instances(
    plan: Plan, access: Mapping[str, HostAccess], builder: ImageBuilder
) -> dict[str, TritonInstance]:
    stack = host_stack(plan.stack)
    setups = {
        name: HostSetup(name, access[name], plan.instances_on(name), stack, builder)
        for name in plan.hosts
    }
    return {
        instance.name: TritonInstance(
            instance, access[instance.host_name], setups[instance.host_name], plan.stack
        )
        for instance in plan.instances
    }


def _instance_outputs(plan: Plan, instances: Mapping[str, TritonInstance]) -> dict[str, object]:
    return {
        planned.name: {
            "host": planned.host_name,
            "gpus": [gpu.uuid for gpu in planned.gpus],
            "unit": planned.unit,
            "endpoint": planned.endpoint,
            "metrics": planned.metrics_endpoint,
            "state": instances[planned.name].state,
        }
        for planned in plan.instances
        if planned.name in instances
    }


def _model_outputs(plan: Plan, states: Mapping[str, pulumi.Output[str]]) -> dict[str, object]:
    return {
        placement.name: _served(placement, states)
        | {"max_model_len": placement.catalog.max_model_len}
        for placement in plan.placements
    }


def _role_outputs(plan: Plan, states: Mapping[str, pulumi.Output[str]]) -> dict[str, object]:
    return {
        role: _served(placement, states) | {"demo": plan.demo}
        for role, placement in plan.roles.items()
    }


def _build_outputs(built: Iterable[Mapping[str, ServingImage]]) -> dict[str, object]:
    """By host and name: which image it came to, and what that holds."""
    return {
        image.name: {
            "reference": reference,
            "image": image.image.image_id,
            "versions": image.versions.versions,
        }
        for images in built
        for reference, image in images.items()
    }


def _served(placement: Placement, states: Mapping[str, pulumi.Output[str]]) -> dict[str, object]:
    instance = placement.instance
    return {
        "model": placement.entry,
        "catalog": placement.model,
        "host": instance.host_name,
        "gpus": [gpu.uuid for gpu in instance.gpus],
        "engine": placement.engine,
        "instance": placement.served_by,
        "unit": f"{placement.served_by}.service",
        "endpoint": placement.endpoint,
        "state": states[placement.name],
    }
