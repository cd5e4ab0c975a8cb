"""Asks every host of a plan what it is, and refuses a plan that it cannot carry."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from components.providers.ssh import Session, open_session
from models.host import Host
from models.plan import Plan
from models.readiness import HostFacts, judge, missing_weights
from models.refusal import Refusal, Refusals

FACTS_SOURCE = Path(__file__).parents[2] / "host" / "facts.py"
FACTS_TIMEOUT_S = 60.0


async def gather_facts(session: Session, host: Host) -> HostFacts:
    """One host's facts, over a session that is open.

    Raises:
        Refusal: python3 or sudo is missing there, or the connection broke.
    """
    asked = {"user": host.ssh.user, "data_dir": host.data_dir}
    answer = await session.run_python(
        FACTS_SOURCE.read_text(),
        asked,
        doing="asking the host what it is",
        timeout_s=FACTS_TIMEOUT_S,
    )
    return HostFacts.model_validate(answer)


def check_hosts(plan: Plan, ssh: Mapping[str, Mapping[str, Any]]) -> list[Refusal]:
    """Ask all hosts at once, and judge their answers.

    Args:
        plan: what is to run on them.
        ssh: host name → how it is reached, as the dynamic providers take it.

    Returns:
        What will keep single models from loading, to be told as a warning.

    Raises:
        Refusals: with everything that keeps a host from being used, on every host.
    """
    warnings: list[Refusal] = []

    async def check(name: str) -> list[Refusal]:
        try:
            async with open_session(ssh[name]) as session:
                facts = await gather_facts(session, plan.hosts[name])
        except Refusal as refusal:
            return [refusal]
        warnings.extend(missing_weights(plan, name, facts))
        return judge(plan, name, facts)

    async def check_all() -> list[Refusal]:
        found = await asyncio.gather(*(check(name) for name in plan.hosts))
        return [refusal for refusals in found for refusal in refusals]

    # A Pulumi program already runs in an event loop, and another cannot run inside it.
    with ThreadPoolExecutor(max_workers=1) as thread:
        refusals = thread.submit(lambda: asyncio.run(check_all())).result()
    if refusals:
        raise Refusals(refusals)
    return warnings
