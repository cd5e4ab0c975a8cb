"""What a load needs of its own demo: that what was on its GPUs before is gone.

It is asked only once everything else for the load is on the host, so that what serves goes on
serving while an image is pulled, a container made or an entry written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, UpdateResult

from components.providers import ledger
from components.providers.eviction import evict
from components.providers.plain_refusals import BerthProvider, same
from components.providers.progress import progress
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host
from models.claim_record import ClaimRecord
from models.refusal import Refusal

_INPUTS = ("ssh", "host", "holder", "load", "of")


class VacatedProvider(BerthProvider):
    """Unloads the demo's own models that a new load cannot stand beside."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer. Nothing to unload is no change, whatever there was before.

        A preview cannot know what will be in the way once the claims change, and says nothing of
        it: a load that takes another's place is shown, and so is the one that goes.
        """
        if isinstance(_news.get("of"), pulumi.output.Unknown):
            return DiffResult(changes=False)
        replaces = [key for key in ("host",) if not same(_olds.get(key), _news.get(key))]
        changed = bool(_news.get("of")) and not same(_olds.get("of"), _news.get("of"))
        return DiffResult(changes=bool(replaces) or changed, replaces=replaces)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Have them gone, their memory back and their claims released.

        Raises:
            Refusal: the host cannot be reached, or one of them does not go.
        """
        records = [ledger.record_of(values) for values in props.get("of") or []]

        async def work(session: Session) -> dict[str, Refusal]:
            return await vacate(session, str(props["host"]), str(props["holder"]), records)

        for refusal in on_host(props["ssh"], work).values():
            raise refusal
        return CreateResult(f"{props['host']}:{props['load']}", _inputs(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """As `create`.

        Raises:
            Refusal: as `create`.
        """
        return UpdateResult(self.create(_news).outs)


class Vacated(Resource, module="berth", name="Vacated"):
    """The GPUs of a load, free of what its demo had there before."""

    def __init__(
        self,
        name: str,
        *,
        ssh: pulumi.Input[Mapping[str, Any]],
        host: str,
        holder: str,
        load: str,
        of: pulumi.Input[Sequence[Mapping[str, Any]]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare what must go before a load.

        Args:
            ssh: how the host is reached: `address`, `port`, `user`, `private_key_file` (or None)
                and `host_key`.
            holder: whose claims they are: `project/stack/demo`.
            load: the name of the load's claim.
            of: the claims that must go, as the ledger has them.
        """
        properties = {"ssh": ssh, "host": host, "holder": holder, "load": load, "of": of}
        super().__init__(VacatedProvider(), name, properties, opts)


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


def _inputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: props[key] for key in _INPUTS if key in props}
