"""Whether a plan passes: asked of all rules before anything is declared."""

from __future__ import annotations

import pulumi

from components.providers.readiness import judge_hosts
from components.resources.hosts_seen import HostsSeen
from models.gpu_map import gpu_map, of_judged
from models.judged import Judged
from models.judging import judge
from models.plan import Plan
from models.refusal import Refusal, Refusals
from models.releases.held import held_by
from models.ways_out import Surroundings, ways_out


def pass_or_refuse(plan: Plan, judged: Judged, seen: HostsSeen) -> None:
    """Say what is not known; show the GPU map in a preview; refuse what cannot work.

    Raises:
        Refusals: with all that is wrong, and the GPU map where GPUs are concerned.
    """
    around = _surroundings(plan, judged, seen)
    unusable, lacking = judge_hosts(plan, seen.inventories)
    refused, unknown = judge(judged, lambda troubled: ways_out(plan, around, troubled))
    refusals = list({str(each): each for each in (*unusable, *refused)}.values())
    for host, facts in seen.facts.items():
        pulumi.log.info(f"host {host}: {facts}")
    # That weights cannot be loaded says enough: nobody asks then whether they would fit.
    told = [each for each in unknown if not any(each.at in missing.at for missing in lacking)]
    for warning in (*seen.old, *lacking, *told):
        pulumi.log.warn(str(warning))
    drawn = gpu_map(of_judged(judged, seen.facts, seen.in_use))
    if any("GPU" in str(refusal) for refusal in refusals):
        refusals.append(Refusal(drawn))
    elif pulumi.runtime.is_dry_run() and not refusals:
        pulumi.log.info(drawn)
    if refusals:
        raise Refusals(refusals)


def _surroundings(plan: Plan, judged: Judged, seen: HostsSeen) -> Surroundings:
    """What changes of the plan are tried among."""
    held = {each.declared.image: held_by(each.declared.image, judged.releases)
            for each in plan.instances}  # fmt: skip
    return Surroundings(
        rooms=judged.rooms,
        others=tuple(claim for host in judged.hosts.values() for claim in host.others),
        weights={
            (host, name): weights
            for host, inventory in seen.inventories.items()
            for name, weights in inventory.weights.items()
        },
        vllm={image: it.vllm if it else None for image, it in held.items()},
        catalog=plan.catalog,
    )
