"""From declarations to a plan: looks names up, and refuses those that mean nothing.

Whether the plan can work is for the rules, see `models.judging`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from models.build import PlannedBuild, resolved
from models.catalog import CatalogModel
from models.engine import Engine
from models.fallback import planned_fallback, same_load_twice
from models.finding import UNTOUCHED
from models.host import Host
from models.plan import Placement, Plan, PlannedInstance
from models.plan_checks import (
    adapter_refusals,
    entry_refusals,
    gpu_refusals,
    replica_refusals,
    role_refusals,
)
from models.refusal import Refusal, Refusals
from models.rules.gpu_exists import pins
from models.serving import planned_server
from models.stack import StackConfig


def make_plan(
    stack: str,
    config: StackConfig,
    catalog: Mapping[str, CatalogModel],
    *,
    known_models: Iterable[str],
    host_stack: StackConfig | None = None,
    project: str = "berth",
    builds: Mapping[str, PlannedBuild] | None = None,
) -> Plan:
    """Resolve a stack's declarations.

    Args:
        stack: its name.
        config: its sections.
        catalog: the entries that its roles name, as far as they are there; others beside them are
            what a refusal may name as a way out.
        known_models: the names of all catalog entries, for messages.
        host_stack: the sections of `config.host_stack`, where that is set.
        project: the Pulumi project, for owners' names.
        builds: name → build, of both stacks, with inputs read.

    Raises:
        Refusals: with everything that is wrong.
    """
    base = host_stack or config
    builds = builds or {}
    refusals = list(gpu_refusals(base))
    instances, unresolved = _instances(base, builds)
    refusals += unresolved
    roles: dict[str, Placement] = {}
    placements: list[Placement] = []
    if config.demo is not None:
        grouped: dict[tuple[str, str, Engine], list[str]] = {}
        for role_name, role in config.demo.roles.items():
            at = f"berth:demo.roles.{role_name}"
            problems = role_refusals(at, role, base, catalog, known_models)
            refusals += problems
            refusals += replica_refusals(at, role, base)
            if not problems and role.instance in instances:
                engine = role.engine or catalog[role.model].engine
                for held_by in (role.instance, *role.replicas):
                    if held_by in instances:
                        grouped.setdefault((role.model, held_by, engine), []).append(role_name)
        for (model, instance, engine), names in grouped.items():
            server, problems = planned_server(
                config, base, names, engine, catalog[model], instances[instance], builds
            )
            refusals += problems
            placement = Placement(
                demo=config.demo.name,
                owner=f"{project}/{stack}/{config.demo.name}",
                model=model,
                catalog=catalog[model],
                instance=instances[instance],
                roles=tuple(names),
                engine=engine,
                server=server,
            )
            placements.append(placement)
            own = [name for name in names if config.demo.roles[name].instance == instance]
            roles |= dict.fromkeys(own, placement)
            if not own:
                continue  # only further replicas: what serves in their place are the others
            fallback, problems = planned_fallback(
                placement, config.demo.roles, base, catalog, known_models, instances
            )
            refusals += problems
            placements += [fallback] if fallback else []
        refusals += same_load_twice(placements)
    refusals += entry_refusals(placements)
    plan = Plan(
        stack=stack,
        hosts=_hosts_in_use(config, base, roles),
        instances=tuple(instances.values()),
        on_stack=config.host_stack or stack,
        owns_hosts=host_stack is None,
        demo=config.demo.name if config.demo else None,
        keys=tuple(config.demo.keys) if config.demo else (),
        connections_per_key=config.demo.connections_per_key if config.demo else None,
        placements=tuple(placements),
        roles=roles,
        inventory=config.inventory,
        catalog=catalog,
        builds={build.reference: build for build in builds.values()},
    )
    refusals += adapter_refusals(plan)
    if refusals:
        raise Refusals(refusals)
    return plan


def _hosts_in_use(
    config: StackConfig, base: StackConfig, roles: Mapping[str, Placement]
) -> dict[str, Host]:
    if base is config:
        return base.hosts
    used = {placement.instance.host_name for placement in roles.values()}
    return {name: host for name, host in base.hosts.items() if name in used}


def _instances(
    config: StackConfig, builds: Mapping[str, PlannedBuild]
) -> tuple[dict[str, PlannedInstance], list[Refusal]]:
    found: dict[str, PlannedInstance] = {}
    refusals: list[Refusal] = []
    homes = {gpu.uuid: name for name, host in config.hosts.items() for gpu in host.gpus}
    for name, instance in config.instances.items():
        at = f"berth:instances.{name}"
        if instance.host not in config.hosts:
            refusals.append(
                Refusal(
                    f"no host `{instance.host}`",
                    consequence=UNTOUCHED,
                    fix=f"hosts declared here: {', '.join(config.hosts)}.",
                    at=f"{at}.host",
                )
            )
            continue
        problems = pins(at, instance.gpus, instance.host, homes)
        refusals += [each.refusal for each in problems]
        try:
            image = resolved(instance.image, builds, f"{at}.image")
        except Refusal as refusal:
            refusals.append(refusal)
            continue
        if not problems:
            host = config.hosts[instance.host]
            by_uuid = {gpu.uuid: gpu for gpu in host.gpus}
            gpus = tuple(by_uuid[uuid] for uuid in instance.gpus)
            found[name] = PlannedInstance(
                name, instance.model_copy(update={"image": image}), instance.host, host, gpus
            )
    return found, refusals
