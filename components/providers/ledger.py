"""The claims in a host's ledger, which `berth-host` keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.providers import berth_host
from components.providers.ssh import Session
from models.claim_record import ClaimRecord
from models.refusal import Refusal

_THE_LEDGERS_OWN = ("since", "leaving", "left_by")


@dataclass(frozen=True)
class Claimed:
    """What a holder has once its new claims are made."""

    claims: list[ClaimRecord]
    leaving: list[ClaimRecord]
    """Its former ones, which still count against everybody else."""
    conflicting: frozenset[str]
    """Those of them that the new ones cannot stand beside, by name."""


async def claim(session: Session, host: str, holder: str, asked: Sequence[ClaimRecord]) -> Claimed:
    """Make a holder's claims exactly these, or none of them.

    Args:
        host: what the host is called, for refusals.
        holder: `project/stack/demo`.
        asked: all that it wants from now on.

    Raises:
        Refusal: somebody else has claimed it, or the host has no `berth-host`.
    """
    payload = {"host": host, "holder": holder, "claims": [record.json() for record in asked]}
    answer = await berth_host.ask(
        session, "claim", payload=payload, doing=f"claiming GPUs for {holder}"
    )
    if answer is None:
        raise Refusal(
            f"{berth_host.PROGRAM} is not there, so nothing says which of its GPUs are taken",
            consequence="Nothing was claimed, so no model of this demo is loaded.",
            fix="bring the host's own stack up first: it installs berth-host.",
            at=f"host {host}",
        )
    return Claimed(
        [record_of(each) for each in answer["claims"]],
        [record_of(each) for each in answer["leaving"]],
        frozenset(answer["conflicting"]),
    )


async def claims(session: Session) -> list[ClaimRecord] | None:
    """Every claim on the host, leaving ones too; None where there is no `berth-host`.

    Raises:
        Refusal: the ledger cannot be read.
    """
    answer = await berth_host.ask(session, "claims", doing="reading the claims")
    return None if answer is None else [record_of(each) for each in answer["claims"]]


async def claims_of(session: Session, holder: str) -> list[ClaimRecord]:
    """One holder's claims, leaving ones too.

    Raises:
        Refusal: the ledger cannot be read.
    """
    return [record for record in await claims(session) or [] if record.owner == holder]


async def release(session: Session, holder: str, names: Sequence[str]) -> None:
    """Release some of a holder's claims; what is gone already is no error.

    Raises:
        Refusal: the ledger cannot be written.
    """
    payload = {"holder": holder, "names": list(names)}
    await berth_host.ask(session, "release", payload=payload, doing=f"releasing claims of {holder}")


async def release_leaving(session: Session, holder: str, name: str) -> None:
    """Release a claim whose model was moved away, and the place that a claim has left; one that is
    still declared stays.

    A model is also deleted to be made anew in its place, under the claim that it has.

    Raises:
        Refusal: the ledger cannot be read or written.
    """
    own = await claims_of(session, holder)
    names = [record.name for record in own if record.leaving and record.load == name]
    if names:
        await release(session, holder, names)


def record_of(values: Mapping[str, Any]) -> ClaimRecord:
    """A record from the ledger's answer or from a resource's properties.

    Raises:
        Refusal: a field is missing, or of another type.
    """
    return ClaimRecord.of(_whole(values))


def declared(record: ClaimRecord) -> dict[str, Any]:
    """What of a record is declared: plain values, in an order of their own."""
    plain = record.json()
    for name in _THE_LEDGERS_OWN:
        del plain[name]
    gpus = sorted(plain["gpus"], key=lambda gpu: str(gpu["uuid"]))
    return plain | {"roles": sorted(plain["roles"]), "gpus": gpus}


def _whole(value: Any) -> Any:
    """Pulumi makes every number a float."""
    if isinstance(value, Mapping):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
