"""Where the facts of a host come from: itself, or what was recorded of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from components.resources.hosts_seen import hosts_seen
from config.inventory import SOURCE, write
from models.inventory import Inventory
from models.plan import Plan
from models.refusal import Refusal
from tests.declarations import SECTIONS, plan_of
from tests.models.test_readiness import GOOD
from tests.providers.local_sshd import free_port

RECORDED = Inventory.model_validate(GOOD | {"free_mib": 49 * 1024})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for host in ("alpha", "beta"):
        write(tmp_path, host, RECORDED)
    return tmp_path


@pytest.fixture(autouse=True)
def _nothing_overridden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SOURCE, raising=False)


def plan(inventory: str) -> Plan:
    """Two hosts that nobody can reach."""
    sections: dict[str, Any] = SECTIONS | {"inventory": inventory}
    hosts = {
        name: host
        | {"ssh": host["ssh"] | {"address": "127.0.0.1", "port": free_port(), "user": "nobody"}}
        for name, host in SECTIONS["hosts"].items()
    }
    return plan_of(sections | {"hosts": hosts})


def test_a_preview_of_a_recorded_stack_reaches_nobody(project: Path) -> None:
    seen = hosts_seen(plan("recorded"), project, preview=True)
    assert not seen.asked
    assert seen.inventories == {"alpha": RECORDED, "beta": RECORDED}
    assert seen.facts["alpha"].startswith("facts of 2026-01-01 00:00 UTC, ")
    assert seen.facts["alpha"].endswith(" (inventory/alpha.json)")
    assert [each.at for each in seen.old] == ["host alpha", "host beta"]
    assert "`berth discover alpha`" in str(seen.old[0])


def test_facts_of_today_are_not_warned_of(project: Path) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write(project, "alpha", RECORDED.model_copy(update={"taken_at": now}))
    seen = hosts_seen(plan("recorded"), project, preview=True)
    assert seen.facts["alpha"].endswith("just taken (inventory/alpha.json)")
    assert [each.at for each in seen.old] == ["host beta"]


def test_whatever_changes_a_host_asks_it_even_if_it_was_recorded(project: Path) -> None:
    with pytest.raises(Refusal, match="cannot"):
        hosts_seen(plan("recorded"), project, preview=False)


@pytest.mark.parametrize(("declared", "override"), [("live", ""), ("recorded", "live")])
def test_a_live_preview_asks(
    project: Path, monkeypatch: pytest.MonkeyPatch, declared: str, override: str
) -> None:
    monkeypatch.setenv(SOURCE, override)
    with pytest.raises(Refusal, match="cannot"):
        hosts_seen(plan(declared), project, preview=True)


def test_one_run_can_take_what_was_recorded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOURCE, "recorded")
    assert not hosts_seen(plan("live"), project, preview=True).asked
    monkeypatch.setenv(SOURCE, "recordet")
    with pytest.raises(Refusal, match="`recordet` is no place"):
        hosts_seen(plan("live"), project, preview=True)
