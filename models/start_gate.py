"""Whether a unit may start: the third place where the overlap of claims is judged.

It runs on the host, so it needs nothing but Python ≥ 3.9.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from models.claim_record import ClaimRecord
from models.refusal import Refusal


@dataclass(frozen=True)
class StartingUnit:
    """A unit that is about to start."""

    instance: str
    """Its name, without `.service`."""
    gpus: tuple[str, ...]
    """UUIDs."""
    on_demand: bool
    """Whether starting holds nothing yet: Triton in EXPLICIT mode loads what it is told to. Others
    take their memory at the start and hold it for life."""
    neighbours: frozenset[str] = frozenset()
    """What its own host stack declares on this host, and the demos that stand on it; itself too."""


def refused_start(
    unit: StartingUnit, claims: Sequence[ClaimRecord], indexes: Mapping[str, int]
) -> list[Refusal]:
    """Why it must not start; empty where it may.

    On each of its GPUs it needs a claim of its own, or nobody else's there. A unit that loads on
    demand may also start under claims of its neighbours, since its own models are claimed one by
    one: a wide instance and the narrow ones under it run side by side.

    Args:
        unit: what starts.
        claims: all claims on this host.
        indexes: UUID → the GPU's index, for people.
    """
    friends: Collection[str] = unit.neighbours if unit.on_demand else ()
    refusals = []
    for uuid in unit.gpus:
        there = [record for record in claims if uuid in {gpu.uuid for gpu in record.gpus}]
        if any(record.instance == unit.instance for record in there):
            continue
        strangers = [record for record in there if record.instance not in friends]
        if not strangers:
            continue
        shown = f"GPU {indexes[uuid]} ({uuid})" if uuid in indexes else uuid
        held = " and by ".join(record.said() for record in strangers)
        release = " && ".join(f"berth-host release --name '{record.name}'" for record in strangers)
        refusals.append(
            Refusal(
                f"{shown} is claimed by {held}",
                consequence=f"{unit.instance} is not started.",
                fix=f"once that is over: `{release}`; or move {unit.instance} to another GPU.",
            )
        )
    return refusals
