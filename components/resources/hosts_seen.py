"""What is known of a plan's hosts: asked of them, or for a preview read from recorded files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from components.providers.readiness import ask_hosts
from config.inventory import SOURCE, file_name, recorded
from config.ssh_keys import ssh_of_hosts
from models.facts_age import dated, is_old
from models.inventory import Inventory
from models.plan import Plan
from models.refusal import Refusal


@dataclass(frozen=True)
class HostsSeen:
    """Each host's inventory, and whether the hosts themselves gave it."""

    inventories: Mapping[str, Inventory]
    asked: bool
    facts: Mapping[str, str]
    """Host → how old its facts are, in words; empty where they were asked just now."""
    old: tuple[Refusal, ...] = ()
    """Facts that are too old to be relied on, to be told as warnings."""

    @property
    def in_use(self) -> dict[tuple[str, str], int]:
        """(host, UUID) → memory in use, in MiB, as nvidia-smi saw it."""
        return {
            (host, gpu.uuid): gpu.used_mib
            for host, inventory in self.inventories.items()
            for gpu in inventory.gpus.found
        }


def hosts_seen(plan: Plan, project: Path, *, preview: bool) -> HostsSeen:
    """Learn of all hosts of a plan. Whatever changes a host asks it, however the stack is set.

    Args:
        preview: whether nothing is changed in this run.

    Raises:
        Refusals: one for each host that cannot be asked, or whose file cannot be used.
    """
    source = os.environ.get(SOURCE) or plan.inventory
    if source not in ("live", "recorded"):
        raise Refusal(
            f"`{source}` is no place to learn of hosts from",
            consequence="Nothing was touched.",
            fix="`live` asks the hosts, `recorded` reads their files.",
            at=SOURCE,
        )
    if source == "live" or not preview:
        return HostsSeen(ask_hosts(plan.hosts, ssh_of_hosts(project, plan.hosts)), True, {})
    inventories = recorded(project, plan.hosts)
    now = datetime.now(UTC)
    facts = {
        host: f"{dated(inventory.taken_at, now)} ({file_name(host)})"
        for host, inventory in inventories.items()
    }
    old = tuple(
        Refusal(
            facts[host],
            consequence="What changed there since is not judged.",
            fix=f"`berth discover {host}` where it can be reached, and commit the file.",
            at=f"host {host}",
        )
        for host, inventory in inventories.items()
        if is_old(inventory.taken_at, now)
    )
    return HostsSeen(inventories, False, facts, old)
