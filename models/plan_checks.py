"""What does not fit together among declarations, each with cause, consequence and fix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from models.catalog import RESERVED_ENGINE_ARGS, CatalogModel
from models.demo import Role
from models.instance import Instance
from models.refusal import Refusal
from models.stack import StackConfig

UNTOUCHED = "Nothing was touched."


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


def pin_refusals(at: str, instance: Instance, homes: Mapping[str, str]) -> list[Refusal]:
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


def port_refusals(config: StackConfig) -> list[Refusal]:
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


def role_refusals(
    at: str,
    role: Role,
    base: StackConfig,
    catalog: Mapping[str, CatalogModel],
    known_models: Iterable[str],
) -> list[Refusal]:
    """A role names a model of the catalog, and an instance as wide as it."""
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
