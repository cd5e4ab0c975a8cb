"""A stack: composes the sections that its config holds, and says what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pulumi

from components.renderers import adapter_unit, gateway_unit
from components.renderers.host_guard import host_stack
from components.resources.access import HostAccess
from components.resources.demo import Demo
from components.resources.gateway import HostGateway
from components.resources.host_guard import HostGuard
from components.resources.host_setup import HostSetup
from components.resources.instance import TritonInstance
from components.resources.serving_image import ImageBuilder, ServingImage
from components.resources.unseen_keys import let_keys_be
from models.answering import Answering, stand_in
from models.host import Host
from models.instance import LOOPBACK
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
        The stack's outputs: `instances`, `models`, `roles`, `keys` and `builds`, each by name, and
        `gateway` by host. The keys are secrets.

    Raises:
        Refusal: if a declared key file is missing.
    """
    access = {
        name: HostAccess.of(project, name, host, asked=asked) for name, host in plan.hosts.items()
    }
    if not asked:
        let_keys_be(access.values())
    builder = ImageBuilder(plan, releases, project)
    setups = _setups(plan, access, builder) if plan.owns_hosts else {}
    instances = {
        each.name: TritonInstance(each, access[each.host_name], setups[each.host_name], plan.stack)
        for each in (plan.instances if plan.owns_hosts else ())
    }
    gateways = {
        name: HostGateway(declared, access[name], setup, plan.stack)
        for name, setup in setups.items()
        if (declared := plan.hosts[name].gateway)
    }
    demo = Demo(plan, access, instances, gateways, builder) if plan.demo else None
    if plan.owns_hosts:
        for name, reached in access.items():
            made: list[pulumi.Resource] = [instances[i.name] for i in plan.instances_on(name)]
            made += [gateways[name]] if name in gateways else []
            claims = [demo.claims[name]] if demo and name in demo.claims else []
            late = [*demo.models, *demo.gateway.resources] if demo else []
            HostGuard(name, reached, host_stack(plan.stack), [*made, *claims], late)
    states = demo.states if demo else {}
    if demo:
        _tell_who_stands_in(plan, demo)
    return {
        "instances": _instance_outputs(plan, instances),
        "gateway": _gateway_outputs(plan, gateways),
        "models": _model_outputs(plan, states),
        "roles": _role_outputs(plan, states, demo),
        "keys": dict(demo.gateway.keys) if demo else {},
        "builds": _build_outputs(
            [*(each.built for each in setups.values()), *(demo.built.values() if demo else [])]
        ),
    }


def _setups(
    plan: Plan, access: Mapping[str, HostAccess], builder: ImageBuilder
) -> dict[str, HostSetup]:
    stack = host_stack(plan.stack)
    return {
        name: HostSetup(name, access[name], plan.instances_on(name), stack, builder)
        for name in plan.hosts
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


def _gateway_outputs(plan: Plan, gateways: Mapping[str, HostGateway]) -> dict[str, object]:
    return {
        name: {
            "url": made.url,
            "unit": gateway_unit.NAME,
            "state": made.state,
            "certificate": made.certificate,
            "adapter": _adapter_output(plan.hosts[name], made),
        }
        for name, made in gateways.items()
    }


def _adapter_output(host: Host, made: HostGateway) -> dict[str, object] | None:
    if host.gateway is None or host.gateway.adapter is None or made.adapter is None:
        return None
    return {
        "endpoint": f"http://{LOOPBACK}:{host.gateway.adapter.port}",
        "image": host.gateway.adapter.image,
        "unit": adapter_unit.NAME,
        "state": made.adapter.state,
    }


def _model_outputs(plan: Plan, states: Mapping[str, pulumi.Output[str]]) -> dict[str, object]:
    return {
        placement.name: _served(placement, states)
        | {"max_model_len": placement.catalog.max_model_len}
        for placement in plan.placements
    }


def _role_outputs(
    plan: Plan, states: Mapping[str, pulumi.Output[str]], demo: Demo | None
) -> dict[str, object]:
    return {
        role: _served(placement, states)
        | {"demo": plan.demo, "replicas": _replicas(plan, role, states)}
        | (_answering(plan, placement, demo.serving[role]) | _reached(role, demo) if demo else {})
        for role, placement in plan.roles.items()
    }


def _replicas(
    plan: Plan, role: str, states: Mapping[str, pulumi.Output[str]]
) -> list[dict[str, object]]:
    """Every load that serves a role, its own first."""
    told = ("gpus", "instance", "unit", "endpoint", "state")
    loads = (_served(each, states) for each in plan.replicas_of(role))
    return [{key: load[key] for key in told} for load in loads]


def _answering(
    plan: Plan, placement: Placement, known: pulumi.Output[Answering]
) -> dict[str, object]:
    """Which model answers, what is declared to stand in, and why it does if it does."""
    fallback = plan.fallback_of(placement)
    return {
        "serving": known.apply(lambda it: it["model"] if it["state"] == "serving" else ""),
        "fallback": fallback.model if fallback else "",
        "reason": known.apply(lambda it: it["reason"]),
    }


def _reached(role: str, demo: Demo) -> dict[str, object]:
    """Where clients find the role, empty on a host without a gateway."""
    gateway = demo.gateway
    return {"url": gateway.urls.get(role, ""), "route": gateway.states.get(role, "")}


def _tell_who_stands_in(plan: Plan, demo: Demo) -> None:
    """A warning for each role that its fallback serves, in previews too."""

    def warn(role: str, placement: Placement) -> None:
        def tell(known: Answering) -> None:
            if line := stand_in(role, placement, known):
                pulumi.log.warn(line)

        demo.serving[role].apply(tell)

    for role, placement in plan.roles.items():
        warn(role, placement)


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
