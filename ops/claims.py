"""What hosts' ledgers hold, for a person; and releasing a claim that nobody else will."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from components.providers import ledger
from components.providers.eviction import evict, loaded
from components.providers.ssh import Session, open_session
from models.claim_record import ClaimRecord
from models.plan import Plan
from models.refusal import Refusal


@dataclass(frozen=True)
class HostClaims:
    """One host's claims, or why it could not be asked."""

    records: Sequence[ClaimRecord]
    trouble: Refusal | None = None


def ask_hosts(ssh: Mapping[str, Mapping[str, Any]]) -> dict[str, HostClaims]:
    """Ask all hosts at once; one that cannot be asked does not hide the others.

    Args:
        ssh: host name → how it is reached.
    """

    async def ask(host: str) -> HostClaims:
        try:
            async with open_session(ssh[host]) as session:
                records = await ledger.claims(session)
        except Refusal as refusal:
            return HostClaims((), refusal)
        if records is None:
            return HostClaims((), _no_ledger(host))
        return HostClaims(records)

    async def ask_all() -> list[HostClaims]:
        return await asyncio.gather(*(ask(host) for host in ssh))

    return dict(zip(ssh, asyncio.run(ask_all()), strict=True))


def show(
    console: Console, plan: Plan, found: Mapping[str, HostClaims], stacks: Sequence[str]
) -> bool:
    """Print the claims, a row for each GPU. True when every host could be asked.

    Args:
        plan: knows the hosts' GPUs by index.
        stacks: `project/stack` of every stack that has a config here.
    """
    table = Table(title="Claims", title_justify="left", title_style="bold", header_style="dim")
    for column in ("host", "GPU", "MiB", "claim", "owner", "roles", "model", "since", ""):
        justify = "right" if column == "MiB" else "left"
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for host, claims in found.items():
        if claims.trouble is not None:
            console.print(f"[red]{host}[/red]: {claims.trouble}", highlight=False)
        indices = {gpu.uuid: gpu.index for gpu in plan.hosts[host].gpus}
        rows = [
            (indices.get(gpu.uuid, gpu.uuid), gpu.mib, record)
            for record in claims.records
            for gpu in record.gpus
        ]
        for index, mib, record in sorted(rows, key=lambda row: (str(row[0]), row[2].name)):
            table.add_row(
                host,
                str(index),
                str(mib),
                record.name,
                record.owner,
                ", ".join(record.roles),
                record.model,
                record.since,
                ", ".join(_marks(record, stacks)),
            )
    console.print(table if table.row_count else "no claims", highlight=False)
    return all(claims.trouble is None for claims in found.values())


def _marks(record: ClaimRecord, stacks: Sequence[str]) -> list[str]:
    marks = []
    if record.shared:
        marks.append("shared")
    if record.instead_of:
        marks.append("fallback")
    if record.leaving:
        marks.append("leaving")
    if not record.stack:
        marks.append("made by hand")
    elif record.stack not in stacks:
        marks.append("[red]no such stack here[/red]")
    return marks


def release(ssh: Mapping[str, Mapping[str, Any]], name: str, *, unload: bool) -> str:
    """Release one claim by its exact name, whoever's it is; what was done, for the person.

    Args:
        ssh: host name → how it is reached; the claim must be on exactly one of them.
        unload: unload the model first, if it still is loaded.

    Raises:
        Refusal: no such claim, its model still is loaded, or does not go.
    """
    found = ask_hosts(ssh)
    there = {(host, record.name): record for host in found for record in found[host].records}
    matches = [(host, record) for (host, called), record in there.items() if called == name]
    if len(matches) != 1:
        for claims in found.values():
            if claims.trouble is not None:
                raise claims.trouble
        raise _not_one(name, [host for host, _ in matches], there)
    ((host, record),) = matches
    return asyncio.run(_release(ssh[host], host, record, unload=unload))


async def _release(ssh: Mapping[str, Any], host: str, record: ClaimRecord, *, unload: bool) -> str:
    name = record.name
    unloaded = ""
    async with open_session(ssh) as session:
        if await _loaded(session, record):
            if not unload:
                raise Refusal(
                    f"its model is loaded on {record.instance}, and serves {_roles(record)}",
                    consequence="Nothing was released: another model given its memory would end "
                    "in CUDA out of memory.",
                    fix=f"`pulumi destroy` stack {record.stack}; or, if nobody needs it, the "
                    "same with `--unload`",
                    at=f"host {host}: {name}",
                )
            for refusal in (await evict(session, [record])).values():
                raise refusal
            unloaded = f", and {record.entry} unloaded from {record.instance}"
        await ledger.release(session, record.owner, [name])
    gpus = ", ".join(f"{gpu.uuid} ({gpu.mib} MiB)" for gpu in record.gpus)
    return (
        f"released on {host}: {name}, which {record.owner} had since {record.since} for "
        f"{_roles(record)}: {gpus}{unloaded}"
    )


async def _loaded(session: Session, record: ClaimRecord) -> bool:
    try:
        return await loaded(session, record)
    except Refusal as refusal:
        raise Refusal(
            f"whether its model is loaded cannot be known: {refusal.cause}",
            consequence="Nothing was released.",
            fix=refusal.fix,
            at=record.name,
        ) from refusal


def _roles(record: ClaimRecord) -> str:
    return ", ".join(record.roles) or record.model or "no role"


def _no_ledger(host: str) -> Refusal:
    return Refusal(
        "berth-host is not there, so nothing says who holds its GPUs",
        fix="bring the host's own stack up.",
        at=f"host {host}",
    )


def _not_one(
    name: str, hosts: Sequence[str], there: Mapping[tuple[str, str], ClaimRecord]
) -> Refusal:
    if hosts:
        return Refusal(
            f"a claim `{name}` is on several hosts: {', '.join(hosts)}",
            consequence="Nothing was released.",
            fix="say which with `--host`.",
        )
    names = "".join(f"\n    {host}: {called}" for host, called in sorted(there))
    return Refusal(
        f"no claim is called `{name}`",
        consequence="Nothing was released.",
        fix=f"name one of those that there are, exactly:{names}" if names else "",
    )
