"""Whether a holder may claim what it asks for, given everything that is claimed on the host.

A unit that serves one model for life has one name wherever its GPUs are, so its claim keeps its
name when it moves. The place that it leaves stays claimed under a name of its own until the server
there has ended: a leaving claim like every other, so all that holds for those holds for it.

Pure, and run on the host inside the ledger's transaction: nothing but Python ≥ 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from models.claim_record import ClaimRecord
from models.overlap import Claim, Room, overlaps
from models.refusal import Refusal

UNTOUCHED = "Nothing was changed."


@dataclass(frozen=True)
class Granted:
    """What the ledger holds of one holder once its new set is claimed."""

    claims: tuple[ClaimRecord, ...]
    """The new set; what was claimed before keeps its `since`."""
    leaving: tuple[ClaimRecord, ...]
    """Claims that are not in it any more. Each stays until it is released."""
    conflicting: tuple[str, ...]
    """Those of them that must be gone before the new set can be loaded, by name."""
    dropped: tuple[str, ...] = ()
    """What was claimed and is not any more: a place left by a claim that is back there."""


def grant(
    holder: str,
    asked: Sequence[ClaimRecord],
    standing: Sequence[ClaimRecord],
    rooms: Mapping[tuple[str, str], Room],
    host: str,
    now: str,
) -> Granted:
    """Make the holder's set exactly `asked`.

    Args:
        holder: `project/stack/demo`.
        asked: all that it wants from now on.
        standing: every claim on the host, whoever holds it.
        rooms: (`host`, UUID) → what the GPU has to give.
        host: what the host is called.
        now: UTC, for `since` of what is new.

    Raises:
        Refusal: any of it cannot be; then none of it is claimed.
    """
    others = [record for record in standing if record.owner != holder]
    own = {record.name: record for record in standing if record.owner == holder}
    _see_that_it_is_whole(holder, asked, rooms, host)
    _see_names(asked, others)
    placed = [_placed(record, own, now) for record in asked]
    claims = tuple(claim for claim, _ in placed)
    gpus = {gpu.uuid for record in claims for gpu in record.gpus}
    # What is asked for now has no time of its own yet: only the other's says since when.
    told = [replace(r, since="" if r.since == now else r.since) for r in claims]
    kept = [claim for record in (*others, *told) for claim in record.claims(host)]
    for overlap in overlaps([claim for claim in kept if claim.gpu in gpus], rooms):
        raise overlap.refusal()
    given_up = [
        replace(r, leaving=True) for r in own.values() if r.load not in {c.name for c in claims}
    ]
    places = [place for _, place in placed if place is not None]
    leaving = tuple(sorted((*given_up, *places), key=lambda record: record.name))
    conflicting = []
    for record in leaving:
        # A fallback that leaves has no place of its own any more: what it was instead of may load.
        alone = replace(record, instead_of="")
        beside = [claim for claim in alone.claims(host) if claim.gpu in gpus]
        if not _has_port_of(record, claims) and _fit(kept, beside, rooms):
            kept += beside
        else:
            conflicting.append(record.name)
    dropped = own.keys() - {record.name for record in (*claims, *leaving)}
    return Granted(claims, leaving, tuple(conflicting), tuple(sorted(dropped)))


def _placed(
    record: ClaimRecord, own: Mapping[str, ClaimRecord], now: str
) -> tuple[ClaimRecord, ClaimRecord | None]:
    """A claim as it is from now on, and the place where its server may still be.

    The server starts at another place only once the former one is released, so as long as that is
    claimed it can be nowhere else: however often the claim moves meanwhile, and also back.
    """
    former = f"{record.name}/former"
    standing = own.get(record.name)
    there = own.get(former, standing)
    if there is None:
        return replace(record, leaving=False, since=now), None
    if not there.for_life or _gpus(there) == _gpus(record):
        return replace(record, leaving=False, since=there.since), None
    since = standing.since if standing and _gpus(standing) == _gpus(record) else now
    place = replace(there, name=former, left_by=record.name, leaving=True)
    return replace(record, leaving=False, since=since), place


def _gpus(record: ClaimRecord) -> set[str]:
    return {gpu.uuid for gpu in record.gpus}


def _has_port_of(record: ClaimRecord, claims: Sequence[ClaimRecord]) -> bool:
    """Whether another unit is to listen where a unit that leaves still does."""
    return record.for_life and any(
        each.for_life and each.http_port == record.http_port and each.instance != record.instance
        for each in claims
    )


def _fit(
    kept: Sequence[Claim], more: Sequence[Claim], rooms: Mapping[tuple[str, str], Room]
) -> bool:
    gpus = {claim.gpu for claim in more}
    return not overlaps([*(claim for claim in kept if claim.gpu in gpus), *more], rooms)


def _see_that_it_is_whole(
    holder: str,
    asked: Sequence[ClaimRecord],
    rooms: Mapping[tuple[str, str], Room],
    host: str,
) -> None:
    firsts = {record.name for record in asked if not record.instead_of}
    for number, record in enumerate(asked):
        at = f"host {host}, claims[{number}]"
        if record.owner != holder:
            raise Refusal(
                f"{record.name} is claimed for {record.owner}, by {holder}",
                consequence=UNTOUCHED,
                fix="a holder claims for itself alone.",
                at=at,
            )
        if record.name in {other.name for other in asked[:number]}:
            raise Refusal(
                f"{record.name} is there twice",
                consequence=UNTOUCHED,
                fix="give each claim a name of its own.",
                at=at,
            )
        if record.instead_of and record.instead_of not in firsts:
            raise Refusal(
                f"{record.name} is claimed instead of {record.instead_of}, which is not claimed",
                consequence=UNTOUCHED,
                fix="claim both at once, for the same holder; a fallback has none of its own.",
                at=at,
            )
        for gpu in record.gpus:
            if (host, gpu.uuid) not in rooms:
                known = sorted((room.index, uuid) for (_, uuid), room in rooms.items())
                listed = ", ".join(f"{index}: {uuid}" for index, uuid in known) or "none"
                raise Refusal(
                    f"{record.name} claims {gpu.uuid}, which this host does not have",
                    consequence=UNTOUCHED,
                    fix=f"`nvidia-smi -L` there lists {listed}.",
                    at=at,
                )


def _see_names(asked: Sequence[ClaimRecord], others: Sequence[ClaimRecord]) -> None:
    for record in asked:
        for other in others:
            taken = sorted(set(record.roles) & set(other.roles))
            if taken:
                what, fix = f"role {taken[0]}", "give the role another name"
            elif record.demo and record.demo == other.demo and record.stack != other.stack:
                what, fix = f"demo {record.demo}", "give the demo another name"
            elif record.for_life and record.instance == other.instance:
                what, fix = f"unit {record.instance}", "give the role another name"
            elif record.name == other.name:
                what, fix = f"claim {record.name}", "give the claim another name"
            else:
                continue
            raise Refusal(
                f"{what} of {record.owner} is taken here by {other.said()}",
                consequence=UNTOUCHED,
                fix=f"{fix}, or end the other first.",
            )
