"""Names among declarations that mean nothing, or two things: then there is no plan to judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from models.catalog import RESERVED_ENGINE_ARGS, CatalogModel
from models.demo import Role
from models.engine import BATCHER_ENTRY, TRAITS, VLLM_ENTRY, Engine
from models.finding import UNTOUCHED
from models.plan import Placement, Plan
from models.refusal import Refusal
from models.stack import StackConfig
from models.trtllm import trtllm_refusals


def gpu_refusals(config: StackConfig) -> Iterable[Refusal]:
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


def role_refusals(
    at: str,
    role: Role,
    base: StackConfig,
    catalog: Mapping[str, CatalogModel],
    known_models: Iterable[str],
) -> list[Refusal]:
    """A role names a model of the catalog, and an instance."""
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
        engine = role.engine or model.engine
        refusals += _budget_refusals(role.model, model, engine)
        variables = instance.environment if instance else {}
        refusals += trtllm_refusals(role.model, model, engine, variables, role.instance)
    return refusals


def replica_refusals(at: str, role: Role, base: StackConfig) -> Iterable[Refusal]:
    """Replicas are on other instances of the role's own host, and stand in for one another."""
    own = base.instances.get(role.instance)
    for number, name in enumerate(role.replicas):
        instance = base.instances.get(name)
        twice = name == role.instance or name in role.replicas[:number]
        if instance is None:
            cause, fix = f"no instance `{name}`", f"declared: {', '.join(base.instances)}."
        elif twice:
            cause, fix = f"{name} holds it already", "name another instance."
        elif own is not None and instance.host != own.host:
            cause = f"{name} is on host {instance.host}, the role on {own.host}"
            fix = f"name an instance of host {own.host}: clients reach a role on one host."
        else:
            continue
        yield Refusal(cause, consequence=UNTOUCHED, fix=fix, at=f"{at}.replicas[{number}]")
    if role.replicas and role.fallback:
        yield Refusal(
            "a role with `replicas` has no `fallback`",
            consequence=f"Where one replica fails, the others serve. {UNTOUCHED}",
            fix="leave one of the two out.",
            at=f"{at}.fallback",
        )
    if role.replicas and role.port:
        yield Refusal(
            f"`port: {role.port}` cannot be the port of {1 + len(role.replicas)} servers",
            consequence=UNTOUCHED,
            fix="leave it out: each then has one 200 above its instance's `http_port`.",
            at=f"{at}.port",
        )


def adapter_refusals(plan: Plan) -> Iterable[Refusal]:
    """A gateway offers OpenAI's API: the engine's own, or the adapter's."""
    for placement in plan.placements:
        gateway = placement.instance.host.gateway
        if gateway is None or gateway.adapter or TRAITS[placement.engine].openai:
            continue
        yield Refusal(
            f"`{placement.engine}` has no OpenAI API, and the gateway of host "
            f"{placement.instance.host_name} no adapter",
            consequence=f"Clients could not reach {' and '.join(placement.roles)}. {UNTOUCHED}",
            fix=f"declare `gateway.adapter` for host {placement.instance.host_name}.",
            at=f"berth:demo.roles.{min(placement.roles)}.engine",
        )


def _budget_refusals(name: str, model: CatalogModel, engine: Engine) -> list[Refusal]:
    if model.shared_mib is None or TRAITS[engine].shares:
        return []
    return [
        Refusal(
            f"`{engine}` cannot keep to `shared_mib`: its KV cache is a share of what is free",
            consequence=f"It would take memory that others on its GPUs were promised. {UNTOUCHED}",
            fix="leave `shared_mib` out and give it GPUs of its own, or take another engine.",
            at=f"catalog/{name}.yaml: shared_mib",
        )
    ]


def _engine_refusals(name: str, model: CatalogModel) -> list[Refusal]:
    return [
        Refusal(
            f"`{key}` is not for `{field}`",
            consequence=f"It would contradict what Berth renders itself. {UNTOUCHED}",
            fix="the weights' directory says it."
            if key == "model"
            else "set `executor` beside it."
            if key == "distributed_executor_backend"
            else f"set `{key}` beside it.",
            at=f"catalog/{name}.yaml: {field}.{key}",
        )
        for field, args in (("engine_args", model.engine_args), ("trtllm_args", model.trtllm_args))
        for key in args
        if key in RESERVED_ENGINE_ARGS
    ]


def entry_refusals(placements: Iterable[Placement]) -> Iterable[Refusal]:
    """A model has one repository entry on a host, and that is of one engine."""
    first: dict[tuple[str, str], Placement] = {}
    for placement in placements:
        if not TRAITS[placement.engine].entry:
            continue
        other = first.setdefault((placement.instance.host_name, placement.entry), placement)
        if ENTRY_OF.get(other.engine, other.engine) != ENTRY_OF.get(
            placement.engine, placement.engine
        ):
            yield Refusal(
                f"`{placement.model}` is served by {other.engine} for {'+'.join(other.roles)} and "
                f"by {placement.engine} for {'+'.join(placement.roles)} on one host",
                consequence=f"Both would run from the one entry `{placement.entry}`. {UNTOUCHED}",
                fix="give both one engine, or the model a second catalog entry.",
                at=f"berth:demo.roles.{min(placement.roles)}.engine",
            )


ENTRY_OF: Mapping[str, str] = dict.fromkeys(VLLM_ENTRY, "vllm") | dict.fromkeys(
    BATCHER_ENTRY, "batcher"
)
"""Engines that run from the same entry."""
