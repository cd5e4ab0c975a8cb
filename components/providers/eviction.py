"""Ending the models that stand behind claims, known by their records alone."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence

from components.providers import gateway_routes, ledger, served_unit
from components.providers.model_reading import remove
from components.providers.model_server import STARTING, Wanted, model_state, server, unit_state
from components.providers.server_turn import unit_turn
from components.providers.ssh import Session
from models.claim_record import ClaimRecord
from models.refusal import Refusal

LOAD_TIMEOUT_S = 900.0
"""How long a model that still is loading is waited for, in seconds (the catalog's default)."""
UNLOAD_TIMEOUT_S = 120.0
"""How long its memory is waited for, in seconds (the catalog's default)."""


async def evict(session: Session, records: Iterable[ClaimRecord]) -> dict[str, Refusal]:
    """Unload the records' models, or stop their servers, and wait until their memory is back.

    One at a time on each server, different servers at the same time. A model that is not loaded, a
    server that is gone and a claim without an instance need nothing; nor does a unit whose claim
    here is released already: what runs under its name now is another's.

    Returns:
        Claim's name → why its model still is loaded; the others are gone.
    """
    servers: dict[str, list[ClaimRecord]] = defaultdict(list)
    # Where a unit may still be comes before where it was to go: there its memory is waited for.
    for record in sorted(records, key=lambda each: not each.leaving):
        if record.instance:
            servers[record.instance].append(record)
    failed: dict[str, Refusal] = {}

    async def empty(behind_one_server: list[ClaimRecord]) -> None:
        for record in behind_one_server:
            try:
                await _unload(session, record)
            except Refusal as refusal:
                failed[record.name] = refusal

    await asyncio.gather(*(empty(each) for each in servers.values()))
    return failed


async def end_former(session: Session, holder: str, unit: str) -> None:
    """End what a unit served under claims that leave, before it is started for another one.

    Raises:
        Refusal: it does not end.
    """
    former = [
        record
        for record in await ledger.claims_of(session, holder)
        if record.leaving and record.for_life and f"{record.instance}.service" == unit
    ]
    for refusal in (await evict(session, former)).values():
        raise refusal


async def loaded(session: Session, record: ClaimRecord) -> bool:
    """Whether the record's model is loaded, or may be as its server is just starting.

    Raises:
        Refusal: the server listens, but cannot be asked.
    """
    if not record.instance:
        return False
    if record.for_life:
        return await served_unit.runs(session, f"{record.instance}.service")
    wanted = _wanted(record)
    if not await session.listens(wanted.http_port):
        return await unit_state(session, wanted.unit) in STARTING
    async with server(session, wanted) as triton:
        state = await model_state(triton, wanted.model)
    return state.state not in ("", "UNAVAILABLE")


async def serves_last(
    session: Session, record: ClaimRecord, claimed: Iterable[ClaimRecord]
) -> bool:
    """Whether a model that leaves is loaded, and nothing that has its roles now is.

    Args:
        claimed: what its holder has claimed in its place. A model that cannot be asked for counts
            as not loaded.
    """
    heirs = [each for each in claimed if not each.leaving and set(each.roles) & set(record.roles)]
    if not heirs or not await _surely_loaded(session, record):
        return False
    return not any([await _surely_loaded(session, heir) for heir in heirs])


async def _surely_loaded(session: Session, record: ClaimRecord) -> bool:
    try:
        return await loaded(session, record)
    except Refusal:
        return False


def in_the_way(before: Sequence[ClaimRecord], now: Sequence[ClaimRecord]) -> list[ClaimRecord]:
    """The claims that give up memory of a GPU on which another one takes more than before.

    Nothing orders their loads: the other might be loaded while this one's model still has it all.
    It is loaded anew in the same run anyway, with less.
    """
    had = {(record.name, gpu.uuid): gpu.mib for record in before for gpu in record.gpus}
    growth = {
        (record.name, gpu.uuid): gpu.mib - had.get((record.name, gpu.uuid), 0)
        for record in now
        for gpu in record.gpus
    }
    taken = {gpu for (_, gpu), mib in growth.items() if mib > 0}
    smaller = {name for (name, gpu), mib in growth.items() if mib < 0 and gpu in taken}
    return [record for record in now if record.name in smaller]


async def _unload(session: Session, record: ClaimRecord) -> None:
    async def close() -> None:
        await gateway_routes.close(session, record.owner, record.load, gateway_routes.REPLACED)

    if record.for_life:
        unit = f"{record.instance}.service"
        async with unit_turn(session, unit):
            if await _stands(session, record):
                await close()
                gpus = [gpu.uuid for gpu in record.gpus]
                mib = min(gpu.mib for gpu in record.gpus)
                await served_unit.end(session, unit, gpus, mib, UNLOAD_TIMEOUT_S)
                if record.leaving:  # At once: whoever comes next must not end what starts then.
                    await ledger.release(session, record.owner, [record.name])
        return
    wanted = _wanted(record)
    try:
        await remove(session, wanted, close)
    except Refusal:
        # Stopped while it was asked, as a host that is taken down with its demo is.
        if await unit_state(session, wanted.unit) in STARTING:
            raise


async def _stands(session: Session, record: ClaimRecord) -> bool:
    return any(
        each.name == record.name and each.leaving >= record.leaving
        for each in await ledger.claims_of(session, record.owner)
    )


def _wanted(record: ClaimRecord) -> Wanted:
    return Wanted(
        model=record.entry,
        instance=record.instance,
        unit=f"{record.instance}.service",
        http_port=record.http_port,
        control_key_file=record.control_key_file,
        digest="",
        gpus=[gpu.uuid for gpu in record.gpus],
        claim_mib=min(gpu.mib for gpu in record.gpus),
        load_timeout_s=LOAD_TIMEOUT_S,
        unload_timeout_s=UNLOAD_TIMEOUT_S,
        canary_timeout_s=0.0,
        engine=record.engine,
    )
