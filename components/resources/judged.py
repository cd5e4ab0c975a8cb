"""A plan as the rules judge it, made before anything is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from components.renderers import (
    adapter_unit,
    container,
    entry,
    gateway_unit,
    server_container,
    unit,
)
from components.resources.demo import claim_record
from models.build import BuiltImage
from models.engine import TRAITS
from models.inventory import Inventory
from models.judged import (
    Judged,
    JudgedGpu,
    JudgedHost,
    JudgedInstance,
    JudgedModel,
    JudgedService,
    Mounted,
    Published,
)
from models.plan import Placement, Plan, PlannedInstance
from models.releases.builds import with_builds
from models.releases.tables import Releases


def of_plan(
    plan: Plan,
    inventories: Mapping[str, Inventory],
    releases: Releases,
    plain_config: Mapping[str, object],
    project: str = "berth",
) -> Judged:
    """Everything that the rules look at.

    Args:
        plan: what is to be.
        inventories: host → what it is; a host that could not be asked is not in it.
        releases: the tables of what images hold.
        plain_config: path → scalar, of all that a user wrote in clear.
        project: the Pulumi project.
    """
    stack = f"{project}/{plan.stack}"
    builds = _builds(plan, inventories)
    return Judged(
        stack=stack,
        hosts={name: _host(plan, name, inventories.get(name), stack) for name in plan.hosts},
        instances=(
            *(_instance(plan, each) for each in plan.instances if each.host_name in plan.hosts),
            *(_server(each) for each in plan.placements if each.server),
        ),
        models=tuple(
            _model(each, inventories.get(each.instance.host_name)) for each in plan.placements
        ),
        services=_services(plan),
        builds=builds,
        plain_config=plain_config,
        releases=with_builds(releases, builds.values()),
    )


def _services(plan: Plan) -> tuple[JudgedService, ...]:
    found = []
    for name, host in plan.hosts.items() if plan.owns_hosts else ():
        if host.gateway is None:
            continue
        text = gateway_unit.text(host.restart)
        found.append(JudgedService(gateway_unit.STEM, name, host.gateway.port, text))
        if adapter := host.gateway.adapter:
            text = adapter_unit.text(host.restart)
            service = JudgedService(adapter_unit.STEM, name, adapter.port, text, adapter.image)
            found.append(service)
    return tuple(found)


def _builds(plan: Plan, inventories: Mapping[str, Inventory]) -> dict[str, BuiltImage]:
    """The builds in use. Hosts that hold different things under one name settle nothing here."""
    images = {each.declared.image for each in plan.instances}
    images |= {each.server.image for each in plan.placements if each.server}
    used = {image: plan.builds[image] for image in images if image in plan.builds}
    held: dict[str, list[dict[str, str]]] = {}
    for inventory in inventories.values():
        for image in inventory.images:
            held.setdefault(image.reference, []).append(image.versions)
    return {
        reference: BuiltImage(
            name=build.name,
            reference=reference,
            bases=build.bases,
            declared=dict(build.versions),
            found=said[0]
            if (said := held.get(reference)) and all(each == said[0] for each in said)
            else None,
        )
        for reference, build in sorted(used.items())
    }


def _host(plan: Plan, name: str, inventory: Inventory | None, stack: str) -> JudgedHost:
    host = plan.hosts[name]
    rooms = inventory.rooms(name, host) if inventory else {}
    records = [each for each in inventory.claims if each.stack != stack] if inventory else []
    found = {gpu.uuid: gpu.index for gpu in inventory.gpus.found} if inventory else {}
    return JudgedHost(
        name=name,
        gpus=tuple(
            JudgedGpu(
                gpu.uuid,
                gpu.index,
                gpu.memory_mib,
                gpu.cuda_mib,
                rooms[name, gpu.uuid].foreign if (name, gpu.uuid) in rooms else (),
            )
            for gpu in host.gpus
        ),
        image_references=host.image_references,
        data_dir=host.data_dir,
        driver=inventory.driver if inventory else "",
        found=found or None,
        others=tuple(claim for record in records for claim in record.claims(name)),
        others_roles={role: record.said() for record in records for role in record.roles},
        others_demos={record.demo: record.stack for record in records if record.demo},
        others_units={record.instance: record.said() for record in records if record.for_life},
        taken_ports=_taken(inventory, plan.stack) if inventory else {},
    )


def _taken(inventory: Inventory, stack: str) -> dict[int, str]:
    """Ports of other stacks' instances, running or not, and of what is not Berth's."""
    made = inventory.docker.containers
    running = {port.port for each in made if each.state == "running" for port in each.ports}
    running |= {service.port for service in inventory.services.values()}
    foreign = {
        port: "something that is not Berth's" for port in inventory.ports if port not in running
    }
    beside = {
        service.port: f"{unit} of stack {service.stack}"
        for unit, service in inventory.services.items()
        if service.stack != stack
    }
    return (
        foreign
        | beside
        | {
            port.port: f"{each.instance} of stack {each.stack}"
            for each in made
            if each.stack != stack
            for port in each.ports
        }
    )


def _instance(plan: Plan, planned: PlannedInstance) -> JudgedInstance:
    declared = planned.declared
    return JudgedInstance(
        name=planned.name,
        host=planned.host_name,
        gpus=tuple(gpu.uuid for gpu in planned.gpus),
        image=declared.image,
        published=tuple(
            Published(each.address, each.port, each.inside)
            for each in container.published_ports(planned)
        ),
        keyed=declared.keyed_apis,
        mounts=tuple(
            Mounted(each.source, each.target, each.read_only) for each in container.mounts(planned)
        ),
        environment=declared.environment,
        unit=unit.template(planned.host),
        owned=plan.owns_hosts,
    )


def _server(placement: Placement) -> JudgedInstance:
    planned = server_container.planned(placement)
    return JudgedInstance(
        name=planned.name,
        host=placement.instance.host_name,
        gpus=tuple(gpu.uuid for gpu in placement.instance.gpus),
        image=planned.image,
        published=tuple(
            Published(each.address, each.port, each.inside)
            for each in server_container.published_ports(placement)
        ),
        keyed="",
        mounts=tuple(
            Mounted(each.source, each.target, each.read_only)
            for each in server_container.mounts(placement)
        ),
        environment=dict(text.split("=", 1) for text in server_container.environment(placement)),
        unit=unit.server(placement),
        role=min(placement.roles),
    )


def _model(placement: Placement, inventory: Inventory | None) -> JudgedModel:
    record = claim_record(placement)
    # As the claim's resource has it.
    record = replace(
        record,
        roles=tuple(sorted(record.roles)),
        gpus=tuple(sorted(record.gpus)),
    )
    files = entry.entry_files(placement)
    return JudgedModel(
        name=record.name,
        owner=record.owner,
        demo=record.demo,
        model=record.model,
        entry=record.entry,
        host=placement.instance.host_name,
        instance=record.instance,
        roles=record.roles,
        claims=record.claims(placement.instance.host_name),
        config_pbtxt=files.get("config.pbtxt", "") if TRAITS[placement.engine].entry else "",
        engine_args=entry.engine_args(placement),
        engine=placement.engine,
        instead_of=record.instead_of,
        image=placement.server.image if placement.server else placement.instance.declared.image,
        weights=inventory.weights.get(placement.catalog.weights) if inventory else None,
    )
