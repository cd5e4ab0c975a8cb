"""A GPU that is asked for is there, on the host where it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from models.finding import Finding, wrong
from models.judged import Judged, JudgedInstance, JudgedModel

NAME = "gpu-exists"
DESCRIPTION = "Each GPU that is declared is on its host, and instances use their own host's."
REMEDY = "Declare each host's GPUs as `nvidia-smi -L` lists them, and pin instances to those."


def findings(judged: Judged) -> list[Finding]:
    """One for each GPU that is not where it is asked for."""
    homes = {gpu.uuid: host.name for host in judged.hosts.values() for gpu in host.gpus}
    found = _missing(judged)
    for instance in judged.own_instances:
        if instance.host in judged.hosts:
            found += pins(instance.at, instance.gpus, instance.host, homes)
        else:
            found.append(_nowhere(f"instance {instance.name}", instance.host, instance.at))
    for model in judged.models:
        found += _of_model(model, judged.instance(model.instance, model.host), judged)
    return found


def pins(at: str, gpus: Sequence[str], host: str, homes: Mapping[str, str]) -> list[Finding]:
    """Each pinned GPU is a different one of the instance's own host.

    Args:
        at: where the instance is declared.
        gpus: the UUIDs that it is pinned to.
        host: the one it runs on.
        homes: UUID → host, of all that are declared.
    """
    found = []
    for number, uuid in enumerate(gpus):
        home = homes.get(uuid)
        if uuid in gpus[:number]:
            cause = f"{uuid} is listed twice"
        elif home is None:
            cause = f"no host has {uuid}"
        elif home != host:
            cause = f"{uuid} is a GPU of host `{home}`, the instance runs on `{host}`"
        else:
            continue
        own = ", ".join(uuid for uuid, home in homes.items() if home == host)
        found.append(
            wrong(
                cause,
                consequence="Docker would not start the container.",
                fix=f"GPUs of `{host}`: {own}.",
                at=f"{at}.gpus[{number}]",
            )
        )
    return found


def _missing(judged: Judged) -> list[Finding]:
    found = []
    for host in judged.hosts.values():
        if host.found is None:
            continue
        listed = ", ".join(f"{index}: {uuid}" for uuid, index in host.found.items()) or "none"
        found += [
            wrong(
                f"GPU {gpu.index} ({gpu.uuid}) is not there",
                consequence="No container could be given it.",
                fix=f"`nvidia-smi -L` there lists {listed}.",
                at=f"host {host.name}",
            )
            for gpu in host.gpus
            if gpu.uuid not in host.found
        ]
    return found


def _of_model(model: JudgedModel, instance: JudgedInstance | None, judged: Judged) -> list[Finding]:
    if model.host not in judged.hosts:
        return [_nowhere(model.name, model.host, model.at)]
    if instance is None:
        names = ", ".join(sorted(each.name for each in judged.instances if each.host == model.host))
        return [
            wrong(
                f"no instance `{model.instance}` on host `{model.host}`",
                consequence=f"{model.model or model.entry} would have no server.",
                fix=f"instances there: {names or 'none'}.",
                at=f"{model.at}.instance",
            )
        ]
    claimed = sorted({claim.gpu for claim in model.claims})
    if claimed == sorted(set(instance.gpus)):
        return []
    return [
        wrong(
            f"{model.model or model.entry} claims {', '.join(claimed) or 'no GPU'}, and "
            f"{model.instance} is pinned to {', '.join(instance.gpus) or 'none'}",
            consequence="Its memory would be counted on other GPUs than it takes it from.",
            fix="claim each GPU of the instance, and no other.",
            at=model.at,
        )
    ]


def _nowhere(what: str, host: str, at: str) -> Finding:
    return wrong(
        f"{what} is on host `{host}`, of which nothing is known",
        consequence="Nobody could tell what fits there.",
        fix=f"declare it under `berth:hosts.{host or 'NAME'}`, with its GPUs.",
        at=at,
    )
