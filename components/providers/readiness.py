"""Asks every host of a plan what it is, and refuses a plan that it cannot carry."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from components.providers.host_inventory import ask
from components.providers.ssh import open_session
from models.host import Host
from models.inventory import Inventory
from models.plan import Plan
from models.readiness import judge, missing_weights
from models.refusal import Refusal, Refusals


def ask_hosts(
    hosts: Mapping[str, Host], ssh: Mapping[str, Mapping[str, Any]]
) -> dict[str, Inventory]:
    """Ask all hosts at once what they are and hold.

    Args:
        hosts: those to ask, by name.
        ssh: host name → how it is reached, as the dynamic providers take it.

    Raises:
        Refusals: one for each host that cannot be asked.
    """

    async def one(name: str) -> Inventory | Refusal:
        try:
            async with open_session(ssh[name]) as session:
                return await ask(session, hosts[name])
        except Refusal as refusal:
            return refusal

    async def every() -> list[Inventory | Refusal]:
        return await asyncio.gather(*(one(name) for name in hosts))

    # A Pulumi program already runs in an event loop, and another cannot run inside it.
    with ThreadPoolExecutor(max_workers=1) as thread:
        answers = thread.submit(lambda: asyncio.run(every())).result()
    refusals = [answer for answer in answers if isinstance(answer, Refusal)]
    if refusals:
        raise Refusals(refusals)
    given = zip(hosts, answers, strict=True)
    return {name: answer for name, answer in given if isinstance(answer, Inventory)}


def judge_hosts(
    plan: Plan, inventories: Mapping[str, Inventory]
) -> tuple[list[Refusal], list[Refusal]]:
    """Whether the hosts can carry the plan at all.

    Returns:
        What keeps a host from being used; and what will keep single models from loading, to be told
        as warnings.
    """
    refusals: list[Refusal] = []
    warnings: list[Refusal] = []
    for name, inventory in inventories.items():
        refusals += judge(plan, name, inventory)
        warnings += missing_weights(plan, name, inventory)
    return refusals, warnings
