"""What a demo claims of one host's GPUs, as a resource that its models' loads depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.providers import ledger
from components.providers.eviction import evict, in_the_way, loaded, serves_last
from components.providers.plain_refusals import BerthProvider, same
from components.providers.progress import say
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host
from components.providers.vacating import vacate
from models.claim_record import ClaimRecord
from models.refusal import Refusal

_INPUTS = ("ssh", "host", "holder", "claims")


class ClaimsProvider(BerthProvider):
    """Claims all of a demo's GPUs on a host or none.

    A demo that moves its models claims their new places first. What it claimed before is then
    `leaving`: it counts against everybody else until its model is unloaded. A leaving model that
    the new ones cannot stand beside is `conflicting`: Pulumi would load them before it deletes, so
    it is unloaded before (`vacating.py`); any other serves on until its own resource is deleted.
    """

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer. Claims that a former run left leaving are a change: it was cut off."""
        changed = [key for key in ("ssh", "holder") if not same(_olds.get(key), _news.get(key))]
        replaces = [] if same(_olds.get("host"), _news.get("host")) else ["host"]
        changes = bool(
            changed or replaces or _olds.get("leaving") or _declared(_olds) != _declared(_news)
        )
        return DiffResult(changes=changes, replaces=replaces, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Claim it all; what the holder has claimed already is no obstacle (a repeated run).

        Raises:
            Refusal: somebody else has claimed some of it, the host has no `berth-host`, or a model
                of the holder that is in the way does not go.
        """
        return CreateResult(f"{props['host']}:{props['holder']}", _ensure(props, {}))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """As `create`. A demo under another name first leaves all that it had under the old one.

        Raises:
            Refusal: as `create`; what was claimed before then still is.
        """
        if _olds["holder"] != _news["holder"]:
            self.delete(_id, _olds)
        return UpdateResult(_ensure(_news, _olds))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """What the ledger really holds for the holder, so that a release by hand is a diff.

        Raises:
            Refusal: the host cannot be reached, or its ledger cannot be read.
        """
        own = on_host(props["ssh"], lambda session: ledger.claims_of(session, props["holder"]))
        if not own:
            return ReadResult("", {})
        inputs = _inputs(props)
        inputs["claims"] = [ledger.declared(record) for record in own if not record.leaving]
        leaving = [record.name for record in own if record.leaving]
        conflicting = props.get("conflicting") or []
        return ReadResult(id_, inputs | {"leaving": leaving, "conflicting": conflicting}, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Release whatever the holder still has here, once no model of it is loaded.

        The models' own resources are deleted before; what a run loaded that was killed before it
        could say so is unloaded here.

        Raises:
            Refusal: the host cannot be reached, or a model does not go: its claim stays then.
        """

        async def work(session: Session) -> dict[str, Refusal]:
            own = await ledger.claims_of(session, _props["holder"])
            return await vacate(session, str(_props["host"]), str(_props["holder"]), own)

        for refusal in on_host(_props["ssh"], work).values():
            raise refusal


class Claims(Resource, module="berth", name="Claims"):
    """A demo's claims on one host, all or none."""

    conflicting: pulumi.Output[list[dict[str, Any]]]
    """Former claims that cannot stand beside these: their models must go before any is loaded."""

    def __init__(
        self,
        name: str,
        *,
        ssh: pulumi.Input[Mapping[str, Any]],
        host: str,
        holder: str,
        claims: Sequence[ClaimRecord],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare what a demo claims.

        Args:
            ssh: how the host is reached: `address`, `port`, `user`, `private_key_file` (or None)
                and `host_key`.
            holder: whose claims they are: `project/stack/demo`.
            claims: all of them; a preview shows them as plain values.
        """
        properties = {
            "ssh": ssh,
            "host": host,
            "holder": holder,
            "claims": [ledger.declared(claim) for claim in claims],
            "leaving": None,
            "conflicting": None,
        }
        super().__init__(ClaimsProvider(), name, properties, opts)


def _ensure(props: Mapping[str, Any], olds: Mapping[str, Any]) -> dict[str, Any]:
    async def work(session: Session) -> list[ClaimRecord]:
        asked = _records(props)
        claimed = await ledger.claim(session, props["host"], props["holder"], asked)
        abandoned = set(olds.get("leaving") or [])
        later = [record for record in claimed.leaving if record.name in claimed.conflicting]
        must_go = [
            record
            for record in claimed.leaving
            if record not in later and await _is_nobodys(session, record, abandoned, claimed.claims)
        ]
        failed = await vacate(session, str(props["host"]), str(props["holder"]), must_go)
        failed |= await evict(session, in_the_way(_records(olds), claimed.claims))
        for name, refusal in failed.items():
            if name not in abandoned:
                raise refusal
            say(str(refusal))
        return later

    # With `since`: a claim that leaves, comes back and leaves again is in the way again.
    conflicting = [record.json() for record in on_host(props["ssh"], work)]
    return _inputs(props) | {"leaving": [], "conflicting": conflicting}


async def _is_nobodys(
    session: Session, record: ClaimRecord, abandoned: set[str], claimed: Sequence[ClaimRecord]
) -> bool:
    """Whether perhaps no resource is left that would end this claim.

    So it is with what an earlier run left leaving, and with a model that never was loaded: a run
    that is killed in a load leaves the claim in the ledger and no model in the state. Not with one
    that was kept because what takes its place failed: that goes once its successor serves.
    """
    if record.for_life and any(each.instance == record.instance for each in claimed):
        return False  # Its unit is to serve another claim, whose resource ends it before.
    if record.name in abandoned:
        return not await serves_last(session, record, claimed)
    try:
        return not await loaded(session, record)
    except Refusal:
        return False  # Its own resource will say what is wrong with the server.


def _records(props: Mapping[str, Any]) -> list[ClaimRecord]:
    return [ledger.record_of(values) for values in props.get("claims") or []]


def _declared(props: Mapping[str, Any]) -> list[dict[str, Any]]:
    records = sorted(_records(props), key=lambda record: record.name)
    return [ledger.declared(record) for record in records]


def _inputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: props[key] for key in _INPUTS if key in props}
