"""Claims made, held by a person, released and listed: each one transaction of the ledger."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from host.gpus import gpus
from host.ledger import BUSY_S, changing, reading
from models.claim_record import ClaimedGpu, ClaimRecord
from models.claiming import UNTOUCHED, Granted, grant
from models.refusal import Refusal


def claim(path: Path, asked: Mapping[str, Any], busy_s: float = BUSY_S) -> dict[str, Any]:
    """Make a holder's set of claims exactly what it asks for: all of it or nothing.

    Args:
        path: the ledger.
        asked: {"holder": `project/stack/demo`, "claims": [record…], "host": its name, optional}.
        busy_s: how long others are waited for, in seconds.

    Raises:
        Refusal: somebody else holds what it would take, or it asks for nothing that can be.
    """
    holder, records = _asked(asked)
    host = str(asked.get("host") or socket.gethostname())
    granted = _granted(path, holder, records, host, None, busy_s)
    if granted is None:
        # A GPU that the ledger does not know; nvidia-smi may take long, so nobody waits for it.
        found = gpus()["gpus"]["found"]
        granted = _granted(path, holder, records, host, found, busy_s)
    assert granted is not None  # noqa: S101 (all that can be known is known)
    return {
        "claims": [record.json() for record in granted.claims],
        "leaving": [record.json() for record in granted.leaving],
        "conflicting": list(granted.conflicting),
    }


def _granted(
    path: Path,
    holder: str,
    records: Sequence[ClaimRecord],
    host: str,
    found: Sequence[Mapping[str, Any]] | None,
    busy_s: float,
) -> Granted | None:
    """The claims made; None where a GPU is not known and it was not looked for yet (`found`)."""
    with changing(path, busy_s) as ledger:
        ledger.know(found or ())
        rooms = ledger.rooms(host)
        if found is None and any((host, gpu.uuid) not in rooms for r in records for gpu in r.gpus):
            return None
        granted = grant(holder, records, ledger.claims(), rooms, host, now())
        for record in (*granted.claims, *granted.leaving):
            ledger.put(record)
        ledger.drop(granted.dropped)
    return granted


def hold(path: Path, index: int, mib: int | None, owner: str, busy_s: float = BUSY_S) -> str:
    """Claim a GPU for something that is not Berth's; the claim's name.

    Args:
        path: the ledger.
        index: the GPU's, as nvidia-smi counts now.
        mib: what it will keep to, in MiB; None for the whole GPU, beside nobody.
        owner: who holds it, in a person's words.
        busy_s: how long others are waited for, in seconds.

    Raises:
        Refusal: there is no such GPU, or it is claimed.
    """
    listed = gpus()["gpus"]
    found = {gpu["index"]: gpu for gpu in listed["found"]}
    if index not in found:
        there = ", ".join(str(known) for known in found) or listed["said"] or "none"
        raise Refusal(f"there is no GPU {index}", consequence=UNTOUCHED, fix=f"there: {there}.")
    gpu = found[index]
    whole = gpu["memory_mib"] - gpu["reserved_mib"]
    asked = ClaimedGpu(gpu["uuid"], mib or whole)
    with changing(path, busy_s) as ledger:
        ledger.know(found.values())
        standing = ledger.claims()
        for record in standing:
            if record.owner == owner and record.gpus == (asked,) and not record.instance:
                return record.name
        number = 1
        while f"held/{index}-{number}" in {record.name for record in standing}:
            number += 1
        name = f"held/{index}-{number}"
        wanted = ClaimRecord(name, owner, (asked,), shared=mib is not None)
        host = socket.gethostname()
        mine = [record for record in standing if record.owner == owner]
        if any(record.instance for record in mine):
            raise Refusal(
                f"{owner} is a stack's demo", consequence=UNTOUCHED, fix="say who you are."
            )
        granted = grant(owner, [*mine, wanted], standing, ledger.rooms(host), host, now())
        ledger.put(granted.claims[-1])
    return name


def release(path: Path, asked: Mapping[str, Any], busy_s: float = BUSY_S) -> dict[str, Any]:
    """Release claims; what is not there is released already.

    Args:
        path: the ledger.
        asked: {"holder": …, "names": […] or null for all of the holder's}; or {"name": …}: this
            one, whoever holds it.
        busy_s: how long others are waited for, in seconds.

    Raises:
        Refusal: `name` is not there.
    """
    if "name" in asked:
        record = release_by_name(path, str(asked["name"]), busy_s)
        return {"released": [record.json()]}
    names = asked.get("names")
    holder = asked.get("holder")
    if not isinstance(holder, str) or not holder or not (names is None or isinstance(names, list)):
        raise Refusal(
            "a release says whose claims: `holder`, and their `names` or null",
            consequence=UNTOUCHED,
        )
    if not path.exists():
        return {"released": []}
    with changing(path, busy_s) as ledger:
        gone = [
            record
            for record in ledger.claims()
            if record.owner == holder and (names is None or record.name in names)
        ]
        ledger.drop(record.name for record in gone)
    return {"released": [record.json() for record in gone]}


def release_by_name(path: Path, name: str, busy_s: float = BUSY_S) -> ClaimRecord:
    """Release one claim by its exact name, whoever holds it.

    Raises:
        Refusal: there is none of that name; it lists those there are.
    """
    standing: list[ClaimRecord] = []
    if path.exists():
        with changing(path, busy_s) as ledger:
            standing = ledger.claims()
            ledger.drop([name])
    for record in standing:
        if record.name == name:
            return record
    there = ", ".join(record.name for record in standing) or "there are none"
    raise Refusal(f"there is no claim {name}", consequence=UNTOUCHED, fix=f"claims here: {there}.")


def listed(path: Path, busy_s: float = BUSY_S) -> dict[str, Any]:
    """All claims, and the GPUs that the ledger knows."""
    with reading(path, busy_s) as ledger:
        if ledger is None:
            return {"claims": [], "gpus": []}
        rooms = sorted((r.index, uuid, r.mib) for (_, uuid), r in ledger.rooms("").items())
        return {
            "claims": [record.json() for record in ledger.claims()],
            "gpus": [{"uuid": uuid, "index": index, "cuda_mib": m} for index, uuid, m in rooms],
        }


def now() -> str:
    """UTC, ISO 8601 to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _asked(asked: Mapping[str, Any]) -> tuple[str, Sequence[ClaimRecord]]:
    holder, claims = asked.get("holder"), asked.get("claims")
    if not isinstance(holder, str) or not holder or not isinstance(claims, list):
        raise Refusal("a claim says who: `holder`, and what: `claims`", consequence=UNTOUCHED)
    return holder, [ClaimRecord.of(value, f"claims[{n}]") for n, value in enumerate(claims)]
