"""From declarations to a plan: looks names up, and refuses what does not fit together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from models.catalog import RESERVED_ENGINE_ARGS, CatalogModel
from models.demo import Role
from models.host import Host
from models.instance import Instance
from models.overlap import overlaps
from models.plan import Placement, Plan, PlannedInstance
from models.refusal import Refusal, Refusals
from models.stack import StackConfig

UNTOUCHED = "Nothing was touched."


def make_plan(
    stack: str,
    config: StackConfig,
    catalog: Mapping[str, CatalogModel],
    *,
    known_models: Iterable[str],
    host_stack: StackConfig | None = None,
    project: str = "berth",
) -> Plan:
    """Resolve a stack's declarations.

    Args:
        stack: its name.
        config: its sections.
        catalog: the entries that its roles name, as far as they are there.
        known_models: the names of all catalog entries, for messages.
        host_stack: the sections of `config.host_stack`, where that is set.
        project: the Pulumi project, for owners' names.

    Raises:
        Refusals: with everything that is wrong.
    """
    base = host_stack or config
    refusals = list(_gpu_refusals(base))
    instances, unresolved = _instances(base)
    refusals += unresolved
    refusals += _port_refusals(base)
    roles: dict[str, Placement] = {}
    placements: list[Placement] = []
    if config.demo is not None:
        grouped: dict[tuple[str, str], list[str]] = {}
        for role_name, role in config.demo.roles.items():
            at = f"berth:demo.roles.{role_name}"
            problems = _role_refusals(at, role, base, catalog, known_models)
            refusals += problems
            if not problems and role.instance in instances:
                grouped.setdefault((role.model, role.instance), []).append(role_name)
        for (model, instance), names in grouped.items():
            placement = Placement(
                demo=config.demo.name,
                owner=f"{project}/{stack}/{config.demo.name}",
                model=model,
                catalog=catalog[model],
                instance=instances[instance],
                roles=tuple(names),
            )
            placements.append(placement)
            roles |= dict.fromkeys(names, placement)
    plan = Plan(
        stack=stack,
        hosts=_hosts_in_use(config, base, roles),
        instances=tuple(instances.values()),
        owns_hosts=host_stack is None,
        demo=config.demo.name if config.demo else None,
        placements=tuple(placements),
        roles=roles,
    )
    refusals += overlaps(plan.claims, plan.gpu_names)
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


def _gpu_refusals(config: StackConfig) -> Iterable[Refusal]:
    """A UUID names one GPU of one host."""
    seen: dict[str, str] = {}
    for host_name, host in config.hosts.items():
        for number, gpu in enumerate(host.gpus):
            at = f"berth:hosts.{host_name}.gpus[{number}]"
            if gpu.uuid in seen:
                yield Refusal(
                    f"{gpu.uuid} is listed twice, here and at {seen[gpu.uuid]}",
                    consequence=f"Two models could be put on one card. {UNTOUCHED}",
                    fix="`nvidia-smi -L` on each host lists its UUIDs.",
                    at=at,
                )
            seen.setdefault(gpu.uuid, at)
        indexes = [gpu.index for gpu in host.gpus]
        for index in sorted({index for index in indexes if indexes.count(index) > 1}):
            yield Refusal(
                f"two GPUs have index {index}",
                consequence=f"People could not tell them apart. {UNTOUCHED}",
                fix="take each card's index from `nvidia-smi`.",
                at=f"berth:hosts.{host_name}.gpus",
            )


def _instances(config: StackConfig) -> tuple[dict[str, PlannedInstance], list[Refusal]]:
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
        problems = _pin_refusals(at, instance, homes)
        refusals += problems
        if not problems:
            host = config.hosts[instance.host]
            by_uuid = {gpu.uuid: gpu for gpu in host.gpus}
            gpus = tuple(by_uuid[uuid] for uuid in instance.gpus)
            found[name] = PlannedInstance(name, instance, instance.host, host, gpus)
    return found, refusals


def _pin_refusals(at: str, instance: Instance, homes: Mapping[str, str]) -> list[Refusal]:
    """Each pinned GPU is a different one of the instance's own host."""
    refusals = []
    own = ", ".join(uuid for uuid, home in homes.items() if home == instance.host)
    for number, uuid in enumerate(instance.gpus):
        home = homes.get(uuid)
        if uuid in instance.gpus[:number]:
            cause = f"{uuid} is listed twice"
        elif home is None:
            cause = f"no host has {uuid}"
        elif home != instance.host:
            cause = f"{uuid} is a GPU of host `{home}`, the instance runs on `{instance.host}`"
        else:
            continue
        refusals.append(
            Refusal(
                cause,
                consequence=f"Docker would not start the container. {UNTOUCHED}",
                fix=f"GPUs of `{instance.host}`: {own}.",
                at=f"{at}.gpus[{number}]",
            )
        )
    return refusals


def _port_refusals(config: StackConfig) -> list[Refusal]:
    """A port of a host's loopback is one server's."""
    used = sorted(
        (instance.host, port, f"berth:instances.{name}.{kind}")
        for name, instance in config.instances.items()
        for kind, port in (
            ("http_port", instance.http_port),
            ("metrics_port", instance.metrics_port),
        )
    )
    refusals = []
    for (host, port), uses in groupby(used, key=lambda use: use[:2]):
        places = [place for _, _, place in uses]
        if len(places) > 1:
            refusals.append(
                Refusal(
                    f"port {port} of host `{host}` is used twice, here and at {places[0]}",
                    consequence=f"The second server could not start. {UNTOUCHED}",
                    fix="give each HTTP and metrics port of a host its own number.",
                    at=places[1],
                )
            )
    return refusals


def _role_refusals(
    at: str,
    role: Role,
    base: StackConfig,
    catalog: Mapping[str, CatalogModel],
    known_models: Iterable[str],
) -> list[Refusal]:
    refusals = []
    instance = base.instances.get(role.instance)
    model = catalog.get(role.model)
    if model is None:
        names = ", ".join(known_models)
        refusals.append(
            Refusal(
                f"no model `{role.model}` in the catalog",
                consequence=UNTOUCHED,
                fix=f"add catalog/{role.model}.yaml, or name one of: {names}.",
                at=f"{at}.model",
            )
        )
    if instance is None:
        refusals.append(
            Refusal(
                f"no instance `{role.instance}`",
                consequence=UNTOUCHED,
                fix=f"instances declared: {', '.join(base.instances)}.",
                at=f"{at}.instance",
            )
        )
    if model is not None:
        refusals += _engine_refusals(role.model, model)
    if model is not None and instance is not None and model.width != instance.width:
        fitting = [name for name, other in base.instances.items() if other.width == model.width]
        way_out = f"an instance with {model.width}: {', '.join(fitting)}; or " if fitting else ""
        refusals.append(
            Refusal(
                f"{role.model} wants {model.tensor_parallel_size} × "
                f"{model.pipeline_parallel_size} (tensor × pipeline) = {model.width} GPU(s), "
                f"{role.instance} has {instance.width}",
                consequence=f"The engine would not start, or leave GPUs idle. {UNTOUCHED}",
                fix=f"{way_out}set tensor_parallel_size in catalog/{role.model}.yaml to "
                f"{instance.width}.",
                at=f"{at}.instance",
            )
        )
    return refusals


def _engine_refusals(name: str, model: CatalogModel) -> list[Refusal]:
    return [
        Refusal(
            f"`{key}` is not for `engine_args`",
            consequence=f"It would contradict what Berth renders itself. {UNTOUCHED}",
            fix="the weights' directory says it."
            if key == "model"
            else "set `executor` beside it."
            if key == "distributed_executor_backend"
            else f"set `{key}` beside it.",
            at=f"catalog/{name}.yaml: engine_args.{key}",
        )
        for key in model.engine_args
        if key in RESERVED_ENGINE_ARGS
    ]
