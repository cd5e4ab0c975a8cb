"""A GPU is one model's, unless all on it are shared and their budgets fit: `models.overlap`."""

from __future__ import annotations

from models.finding import Finding
from models.judged import Judged
from models.overlap import overlaps

NAME = "gpu-overlap"
DESCRIPTION = "Each GPU carries what is claimed of it, by this stack and all others."
REMEDY = "Move a role to an instance on other GPUs, remove it, or share the GPU by budgets."


def findings(judged: Judged) -> list[Finding]:
    """One for each GPU that cannot carry what this stack and others claim of it."""
    own = set(judged.claims)
    touched = {(claim.host, claim.gpu) for claim in own}
    others = [
        claim
        for host in judged.hosts.values()
        for claim in host.others
        if (claim.host, claim.gpu) in touched
    ]
    return [
        Finding(
            overlap.refusal(),
            troubled=tuple(sorted({claim.name for claim in overlap.claims if claim in own})),
        )
        for overlap in overlaps([*own, *others], judged.rooms)
    ]
