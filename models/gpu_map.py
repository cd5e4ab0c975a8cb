"""The GPU map: which model sits where, as text for terminals, CI logs and pull requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from models.host import Host
from models.inventory import Inventory
from models.judged import Judged
from models.overlap import Claim, Room, overlaps, taken_mib

PLANNED, LEDGER, FOREIGN = "this plan", "ledger", "not Berth's"
OVERLAP = "<== OVERLAP"
_SHORT = len("GPU-3704cbc7")
_MOST = 24
"""GPUs without anybody that are listed one by one, at most: a fleet's are counted instead."""


@dataclass(frozen=True)
class Mapped:
    """What a map is drawn from."""

    rooms: Mapping[tuple[str, str], Room]
    """(host, UUID) → what that GPU has to give, and which processes there are not Berth's."""
    planned: tuple[Claim, ...] = ()
    """Claims of the plan at hand."""
    ledger: tuple[Claim, ...] = ()
    """Claims of everybody else, as the hosts' ledgers hold them."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Host → how old what is known of it is: `facts of …, 3 days old`."""
    in_use: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(host, UUID) → memory that nvidia-smi saw in use, in MiB."""


def of_judged(
    judged: Judged, facts: Mapping[str, str], in_use: Mapping[tuple[str, str], int]
) -> Mapped:
    """What the map of a stack that is judged is drawn from."""
    others = tuple(claim for host in judged.hosts.values() for claim in host.others)
    return Mapped(judged.rooms, judged.claims, others, facts, in_use)


def of_host(name: str, host: Host, inventory: Inventory, facts: str = "") -> Mapped:
    """What the map of one host is drawn from, as it is: all claims are its ledger's."""
    return Mapped(
        rooms=inventory.rooms(name, host),
        ledger=tuple(claim for record in inventory.claims for claim in record.claims(name)),
        facts={name: facts},
        in_use={(name, gpu.uuid): gpu.used_mib for gpu in inventory.gpus.found},
    )


@dataclass(frozen=True)
class _Line:
    mib: int
    kind: str
    who: str


def gpu_map(mapped: Mapped) -> str:
    """One block for each host, a line for each GPU, and below it who takes how much of it.

    Sizes are MiB of what CUDA can give, as claims are. Free is what nobody claims or holds; on a
    GPU with more taken than there is, or with a model that must be alone beside another, stands
    `<== OVERLAP`, by the same rule that refuses it.
    """
    clashing = {
        (each.host, each.gpu): each
        for each in overlaps([*mapped.planned, *mapped.ledger], mapped.rooms)
    }
    holders = _holders(mapped)
    taken = _taken(mapped)
    places = set(mapped.rooms) | set(holders)
    blocks = []
    for host in sorted({host for host, _ in places}):
        gpus = sorted(
            (gpu for at, gpu in places if at == host),
            key=lambda gpu: (_index(mapped, host, gpu), gpu),
        )
        lines = [_title(mapped, host)]
        empty = [gpu for gpu in gpus if (host, gpu) not in holders]
        for gpu in gpus:
            if gpu in empty and len(empty) > _MOST:
                continue
            lines.append(_gpu(mapped, host, gpu, taken[host, gpu], (host, gpu) in clashing))
            lines += [
                f"    {line.mib:>7}  {line.kind:<{len(FOREIGN)}}  {line.who}"
                for line in holders.get((host, gpu), ())
            ]
        if len(empty) > _MOST:
            lines.append(f"  and {len(empty)} GPUs that nobody has claimed")
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def _holders(mapped: Mapped) -> dict[tuple[str, str], list[_Line]]:
    found: dict[tuple[str, str], list[_Line]] = defaultdict(list)
    for kind, claims in ((PLANNED, mapped.planned), (LEDGER, mapped.ledger)):
        for claim in _ordered(claims):
            shared = ", shared" if claim.shared else ""
            found[claim.host, claim.gpu].append(_Line(claim.mib, kind, f"{claim.owner}{shared}"))
    for place, room in mapped.rooms.items():
        for process in sorted(room.foreign):
            who = f"{process.name} (pid {process.pid})"
            found[place].append(_Line(process.mib, FOREIGN, who))
    return dict(found)


def _taken(mapped: Mapped) -> dict[tuple[str, str], int]:
    """Of each GPU, in MiB; a model and its fallback take it once."""
    claims: dict[tuple[str, str], list[Claim]] = defaultdict(list)
    for claim in (*mapped.planned, *mapped.ledger):
        claims[claim.host, claim.gpu].append(claim)
    taken: dict[tuple[str, str], int] = defaultdict(int)
    for place, there in claims.items():
        taken[place] = taken_mib(there)
    for place, room in mapped.rooms.items():
        taken[place] += room.mib - room.left_mib
    return taken


def _ordered(claims: Iterable[Claim]) -> list[Claim]:
    """Each once: the overlap rule counts a claim that is given twice once."""
    return sorted(set(claims))


def _title(mapped: Mapped, host: str) -> str:
    facts = mapped.facts.get(host)
    return f"GPU map of host {host}, in MiB" + (f": {facts}" if facts else "")


def _index(mapped: Mapped, host: str, gpu: str) -> int:
    room = mapped.rooms.get((host, gpu))
    return room.index if room else 1 << 30


def _gpu(
    mapped: Mapped,
    host: str,
    gpu: str,
    taken: int,
    clashes: bool,
) -> str:
    room = mapped.rooms.get((host, gpu))
    name = f"  GPU {room.index if room else '?':<3} {gpu[:_SHORT]}"
    if room is None:
        return f"{name}  size not known, {taken} taken" + (f"  {OVERLAP}" if clashes else "")
    free = room.mib - taken
    left = f"{free} free" if free >= 0 else f"{-free} too many"
    size = f"{name}  {room.mib:>6} in all  {taken:>6} taken  {left:>13}"
    used = mapped.in_use.get((host, gpu))
    now = f"  {used:>6} in use" if used is not None else ""
    return f"{size}{now}" + (f"  {OVERLAP}" if clashes else "")
