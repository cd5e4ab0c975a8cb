"""What a load needs of its own demo: that what was on its GPUs before is gone.

It is asked only once everything else for the load is on the host, so that what serves goes on
serving while an image is pulled, a container made or an entry written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.providers import ledger
from components.providers.eviction import evict
from components.providers.plain_refusals import same
from components.providers.progress import progress
from components.providers.ssh import Session
from models.claim_record import ClaimRecord
from models.refusal import Refusal


def others(olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    """Whether a load has something to unload that it had not before.

    Nothing to unload is no change, whatever there was before. A preview cannot know what will be in
    the way once the claims change, and says nothing of it: a load that takes another's place is
    shown, and so is the one that goes.
    """
    now = news.get("vacates")
    unknown = isinstance(now, pulumi.output.Unknown)
    return not unknown and bool(now) and not same(olds.get("vacates"), now)


async def clear(session: Session, props: Mapping[str, Any]) -> None:
    """Have what is in a load's way gone, its memory back and its claims released.

    Args:
        props: the load's: `host`, `holder`, and `vacates`, the claims as the ledger has them.

    Raises:
        Refusal: the host cannot be reached, or one of them does not go.
    """
    records = [ledger.record_of(values) for values in props.get("vacates") or []]
    failed = await vacate(session, str(props["host"]), str(props["holder"]), records)
    for refusal in failed.values():
        raise refusal


async def vacate(
    session: Session, host: str, holder: str, records: Sequence[ClaimRecord]
) -> dict[str, Refusal]:
    """Unload the records' models and release their claims; what failed, by claim's name."""
    if not records:
        return {}
    async with progress(f"{host}: unloading models of {holder}"):
        failed = await evict(session, records)
    names = [record.name for record in records if record.name not in failed]
    await ledger.release(session, holder, names)
    return failed


def in_its_way(
    load: str, uuids: Sequence[str], port: int, conflicting: Sequence[Mapping[str, Any]] | None
) -> list[Mapping[str, Any]]:
    """Of the claims that cannot stand beside the new ones, those on a load's GPUs or its port.

    The place that the load has left itself is not in its way: it ends there before it starts.

    Args:
        load: the name of its claim.
        uuids: its GPUs.
        port: where its own server listens; 0 if it has none.
        conflicting: as `Claims.conflicting`.
    """
    return [
        claim
        for claim in conflicting or []
        if load not in (claim["name"], claim.get("left_by"))
        and (
            {gpu["uuid"] for gpu in claim["gpus"]} & set(uuids)
            or (port and claim["http_port"] == port)
        )
    ]
