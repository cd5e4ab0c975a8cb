"""What serves a load's roles where it fails itself: which placement that comes to, or why none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from models.catalog import CatalogModel
from models.demo import Fallback, Role
from models.engine import TRAITS
from models.finding import UNTOUCHED
from models.plan import Placement, PlannedInstance
from models.plan_checks import role_refusals
from models.refusal import Refusal
from models.stack import StackConfig


def planned_fallback(
    primary: Placement,
    roles: Mapping[str, Role],
    base: StackConfig,
    catalog: Mapping[str, CatalogModel],
    known_models: Iterable[str],
    instances: Mapping[str, PlannedInstance],
) -> tuple[Placement | None, list[Refusal]]:
    """The fallback of a load, None where its roles declare none, and what is wrong with it.

    Args:
        primary: the load.
        roles: the demo's, by name.
        base: the sections that declare hosts and instances.
        catalog: the entries that can be read.
        known_models: the names of all catalog entries, for messages.
        instances: every instance that is known.
    """
    first = min(primary.roles)
    at = f"berth:demo.roles.{first}.fallback"
    declared = {name: roles[name].fallback for name in primary.roles}
    if len({_key(each) for each in declared.values()}) > 1:
        return None, [_differ(primary, declared)]
    fallback = declared[first]
    if fallback is None:
        return None, []
    instance = instances.get(fallback.instance or primary.instance.name)
    asked = Role(
        model=fallback.model,
        instance=fallback.instance or primary.instance.name,
        engine=fallback.engine,
    )
    problems = role_refusals(at, asked, base, catalog, known_models)
    if problems or instance is None:
        return None, problems
    model = catalog[fallback.model]
    placement = Placement(
        demo=primary.demo,
        owner=primary.owner,
        model=fallback.model,
        catalog=model,
        instance=instance,
        roles=primary.roles,
        engine=asked.engine or model.engine,
        instead_of=primary.claim_name,
    )
    if TRAITS[placement.engine].for_life:
        problems.append(_for_life(placement, at))
    if placement.claim_name == primary.claim_name:
        problems.append(
            Refusal(
                f"{primary.model} on {primary.served_by} cannot be its own fallback",
                consequence=f"Where the one fails, the other does. {UNTOUCHED}",
                fix="name another model, or another instance.",
                at=at,
            )
        )
    if instance.host_name != primary.instance.host_name:
        problems.append(
            Refusal(
                f"{instance.name} is on host {instance.host_name}, the role on "
                f"{primary.instance.host_name}",
                consequence=f"Clients reach a role on one host. {UNTOUCHED}",
                fix=f"name an instance of host {primary.instance.host_name}.",
                at=f"{at}.instance",
            )
        )
    return (None, problems) if problems else (placement, [])


def same_load_twice(placements: Sequence[Placement]) -> list[Refusal]:
    """Fallbacks that are another role's load too: it would be loaded and unloaded for both."""
    seen: dict[str, Placement] = {}
    found = []
    for placement in sorted(placements, key=lambda each: bool(each.instead_of)):
        other = seen.setdefault(placement.claim_name, placement)
        if other is not placement:
            what = "the fallback" if other.instead_of else "the model"
            found.append(
                Refusal(
                    f"{placement.model} on {placement.served_by} is {what} of "
                    f"{' and '.join(other.roles)} already",
                    consequence=f"One load cannot stand by for one and serve another. {UNTOUCHED}",
                    fix="name another model or another instance.",
                    at=f"berth:demo.roles.{min(placement.roles)}.fallback",
                )
            )
    return found


def _key(fallback: Fallback | None) -> tuple[object, ...]:
    return (fallback.model, fallback.instance, fallback.engine) if fallback else ()


def _differ(primary: Placement, declared: Mapping[str, Fallback | None]) -> Refusal:
    told = ", ".join(f"{name}: {each.model if each else 'none'}" for name, each in declared.items())
    return Refusal(
        f"{' and '.join(primary.roles)} share one load and name different fallbacks ({told})",
        consequence=f"One load is replaced by one other. {UNTOUCHED}",
        fix="give each of them the same `fallback`, or put one on a load of its own.",
        at=f"berth:demo.roles.{min(primary.roles)}.fallback",
    )


def _for_life(placement: Placement, at: str) -> Refusal:
    loaded = ", ".join(f"`{name}`" for name, traits in TRAITS.items() if not traits.for_life)
    return Refusal(
        f"`{placement.engine}` holds one model for life, so it cannot stand by",
        consequence=f"It would take its GPUs beside the model that it is to replace. {UNTOUCHED}",
        fix=f"set `engine` of the fallback to one that Triton loads on demand: {loaded}.",
        at=f"{at}.engine",
    )
