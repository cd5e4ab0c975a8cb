"""The overlap rule: what a GPU can carry. One pure function over claims decides.

It is asked three times: for a plan, when claims are made on the host, and for what a unit's start
would take. So that the host can ask it too, this file needs nothing but Python ≥ 3.9.

Two engines on one GPU do not share by themselves: each takes its share of the whole card at start
(vLLM, `request_memory`), so the second ends in CUDA's out-of-memory. They may stand side by side
only where each was told beforehand how much it may take, and that fits.

A fallback's claim is instead of another's: only one of the two is ever loaded. So on a GPU the
larger of them counts, and they do not exclude each other; everybody else meets both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from models.refusal import Refusal


@dataclass(frozen=True, order=True)
class Claim:
    """A loaded model's right to memory on one GPU of one host."""

    host: str
    gpu: str
    """UUID."""
    name: str
    """Unique on its host; the claims of one name, on several GPUs, are one model's."""
    owner: str
    """Who claims, as people call it: `berth/dev/reference: sentry (gemma-4-e2b-it on triton@3)`."""
    mib: int
    """Memory, in MiB: what its engine is told to take."""
    shared: bool = False
    """Whether it may stand beside others: `mib` is then a budget that its engine keeps to."""
    instead_of: str = ""
    """Name of the claim that it is an alternative to: they are never both loaded."""

    @property
    def place(self) -> str:
        """What it has in common with its alternatives: the name of the claim of the first."""
        return self.instead_of or self.name


def taken_mib(claims: Iterable[Claim]) -> int:
    """What claims of one GPU come to, in MiB: of alternatives the largest counts."""
    places: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for claim in set(claims):
        places[claim.place][claim.name] += claim.mib
    return sum(max(alternatives.values()) for alternatives in places.values())


@dataclass(frozen=True, order=True)
class Foreign:
    """A process that holds memory on a GPU and is not Berth's."""

    name: str
    pid: int
    mib: int


@dataclass(frozen=True)
class Room:
    """What one GPU has to give."""

    index: int
    """As `nvidia-smi` counts, for people."""
    mib: int
    """What CUDA can give of it, in MiB: less than `memory.total` of `nvidia-smi`."""
    foreign: tuple[Foreign, ...] = ()
    """What others hold of it."""

    @property
    def left_mib(self) -> int:
        """What is left for claims, in MiB."""
        return self.mib - sum(process.mib for process in self.foreign)


@dataclass(frozen=True)
class Overlap:
    """One GPU that cannot carry what is claimed of it."""

    host: str
    gpu: str
    claims: tuple[Claim, ...]
    room: Room | None

    @property
    def exclusive(self) -> bool:
        """Whether it is about a model that must be alone, rather than about too little memory."""
        places = {claim.place for claim in self.claims}
        return len(places) > 1 and not all(claim.shared for claim in self.claims)

    @property
    def mib(self) -> int:
        """What the claims come to, in MiB."""
        return taken_mib(self.claims)

    def refusal(self, ways_out: Sequence[str] = ()) -> Refusal:
        """Both owners, the GPU, the memory, and how to get out of it.

        Args:
            ways_out: changes of the plan that are known to fit.
        """
        shown = f"GPU {self.room.index} ({self.gpu})" if self.room else self.gpu
        owners = " and by ".join(f"{claim.owner}: {claim.mib} MiB" for claim in self.claims)
        if self.exclusive:
            consequence = (
                "Each engine takes its share of the whole card at start, so the one loaded later "
                "would end in CUDA out of memory."
            )
            otherwise = "move one of the roles to an instance on other GPUs, or remove it."
        else:
            consequence = f"That is {self.mib} MiB{self._of_what_is_there()}."
            otherwise = "move one of the roles to other GPUs, or lower its memory budget."
        return Refusal(
            f"{shown} is claimed by {owners}",
            consequence=f"{consequence} Nothing was touched.",
            fix=" Or: ".join(ways_out) or otherwise,
            at=f"host {self.host}",
        )

    def _of_what_is_there(self) -> str:
        if self.room is None:
            return ""
        there = f"; CUDA can give {self.room.mib} MiB"
        if not self.room.foreign:
            return there
        held = ", ".join(
            f"{process.name} (pid {process.pid}) {process.mib} MiB" for process in self.room.foreign
        )
        left = self.room.left_mib
        return f"{there}, of which {left} MiB are left: not Berth's and holding memory are {held}"


def overlaps(
    claims: Iterable[Claim], rooms: Mapping[tuple[str, str], Room] | None = None
) -> list[Overlap]:
    """Every GPU that cannot carry its claims, in a stable order.

    A GPU is one model's, unless every model on it is shared and their budgets fit; a model and
    its fallback are one here, as large as the larger of them. A GPU that is
    not in `rooms` is judged by the first half only.

    Args:
        claims: all claims on all hosts, in any order. One given twice counts once.
        rooms: (host, UUID) → what that GPU has to give.
    """
    holders: dict[tuple[str, str], set[Claim]] = defaultdict(set)
    for claim in claims:
        holders[claim.host, claim.gpu].add(claim)
    found = []
    for (host, gpu), held in holders.items():
        room = (rooms or {}).get((host, gpu))
        places = {claim.place for claim in held}
        alone = len(places) == 1 or all(claim.shared for claim in held)
        fits = room is None or taken_mib(held) <= room.left_mib
        if not (alone and fits):
            found.append(Overlap(host, gpu, tuple(sorted(held)), room))
    return sorted(found, key=lambda overlap: (overlap.host, overlap.gpu))
