"""Names that clients call, and names of demos, mean one thing on a host.

A demo's name is the first part of its repository entries, so two of one name would write the same.
With a role it names the unit of a server of one model's own; two may come to one name, as `shop-eu`
with `architect` and `shop` with `eu-architect`.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from models.engine import TRAITS
from models.finding import Finding, wrong
from models.judged import Judged, JudgedModel

NAME = "unique-names"
DESCRIPTION = (
    "Roles are unique on a host across demos; demos, instances and units are unique on a host."
)
REMEDY = "Give one of the two another name."
HOSTS_OWN = ("berth-gateway", "berth-adapter", "nvidia-persistenced", "nvidia-fabricmanager")
"""Units of a host, its Berth's and its driver's, that could be named after a demo and a role."""


def findings(judged: Judged) -> list[Finding]:
    """One for each name that two have."""
    return [*_roles(judged), *_demos(judged), *_instances(judged), *_units(judged)]


def _roles(judged: Judged) -> list[Finding]:
    holders: dict[tuple[str, str], list[JudgedModel]] = defaultdict(list)
    for model in judged.models:
        if model.instead_of:
            continue  # The role is its first model's; this one answers under no name of its own.
        for role in set(model.roles):
            holders[model.host, role].append(model)
    found = []
    for (host, role), models in sorted(holders.items(), key=lambda item: item[0]):
        # Replicas, which stand in for one another, have one owner, model and engine.
        alike = {(each.owner, each.model, each.engine): each for each in reversed(models)}
        owners = sorted(
            f"{each.owner} ({each.model} on {each.instance})" for each in alike.values()
        )
        other = judged.hosts[host].others_roles.get(role) if host in judged.hosts else None
        if other is not None:
            owners.append(other)
        demo = min(each.demo for each in models) or "my"
        if len(owners) > 1:
            found.append(
                wrong(
                    f"role `{role}` on host `{host}` is claimed by {' and by '.join(owners)}",
                    consequence="A client that calls it could reach either.",
                    fix=f"call one of them otherwise, such as `{demo}-{role}`.",
                    at=f"berth:demo.roles.{role}",
                )
            )
    return found


def _demos(judged: Judged) -> list[Finding]:
    demos = sorted({(model.host, model.demo) for model in judged.models if model.demo})
    return [
        wrong(
            f"demo `{demo}` on host `{host}` is there already, of stack "
            f"{judged.hosts[host].others_demos[demo]}",
            consequence="Both would write repository entries of the same names.",
            fix=f"give this one another name, such as `{demo}-2`.",
            at="berth:demo.name",
        )
        for host, demo in demos
        if host in judged.hosts and demo in judged.hosts[host].others_demos
    ]


def _instances(judged: Judged) -> list[Finding]:
    names = Counter((instance.host, instance.name) for instance in judged.instances)
    return [
        wrong(
            f"instance `{name}` of host `{host}` is declared {times} times",
            consequence="They would share one systemd unit.",
            fix="give each instance of a host its own name.",
            at=f"berth:instances.{name}",
        )
        for (host, name), times in sorted(names.items())
        if times > 1
    ]


def _units(judged: Judged) -> list[Finding]:
    found = []
    for model in judged.models:
        traits = TRAITS.get(model.engine)
        if traits is None or not traits.for_life:
            continue
        theirs = judged.hosts[model.host].others_units if model.host in judged.hosts else {}
        if model.instance in HOSTS_OWN or model.instance.startswith("systemd-"):
            taken_by = "the host itself"
        elif model.instance in theirs:
            taken_by = theirs[model.instance]
        else:
            continue
        found.append(
            wrong(
                f"unit `{model.instance}` of {model.owner} is on host `{model.host}` already, of "
                f"{taken_by}",
                consequence="One would be written over the other, and end what it serves.",
                fix="give the role another name: a server's unit is called `<demo>-<role>`.",
                at=model.at,
            )
        )
    return found
