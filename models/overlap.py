"""The overlap rule: a GPU is one model's. One pure function over claims decides.

Two engines on one GPU do not share: each takes `gpu_memory_utilization` of the whole card at start
(vLLM, `request_memory`), so the second ends in CUDA's out-of-memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from models.refusal import Refusal


@dataclass(frozen=True, order=True)
class Claim:
    """A loaded model's right to memory on one GPU of one host."""

    host: str
    gpu: str
    """UUID."""
    owner: str
    """Who claims, as people call it: `dev/reference: gemma-4-e2b on triton@3`."""
    mib: int
    """Memory, in MiB."""


def overlaps(claims: Iterable[Claim], gpu_names: dict[str, str] | None = None) -> list[Refusal]:
    """Refuse every GPU that more than one owner claims, in a stable order.

    Args:
        claims: all claims on all hosts, in any order. Claims of one owner on several GPUs are one
            model's; a claim given twice counts once.
        gpu_names: UUID → how a person calls the GPU (`GPU 2`); the UUID itself where absent.
    """
    holders: dict[tuple[str, str], set[Claim]] = defaultdict(set)
    for claim in claims:
        holders[claim.host, claim.gpu].add(claim)
    refusals = []
    for (host, gpu), held in sorted(holders.items()):
        if len({claim.owner for claim in held}) < 2:
            continue
        names = gpu_names or {}
        shown = f"{names[gpu]} ({gpu})" if gpu in names else gpu
        owners = " and ".join(f"{claim.owner} ({claim.mib} MiB)" for claim in sorted(held))
        refusals.append(
            Refusal(
                f"{shown} is claimed by {owners}",
                consequence="Each engine takes its share of the whole card at start, so the one "
                "loaded later would end in CUDA out of memory.",
                fix="move one of the roles to an instance on other GPUs, or remove it.",
                at=f"host {host}",
            )
        )
    return refusals
