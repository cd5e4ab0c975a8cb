"""Claims as a person sees them, and releases them by name."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from components.providers import berth_host, ledger
from components.providers.ssh import open_session
from models.claim_record import ClaimRecord
from models.refusal import Refusal
from ops.claims import HostClaims, ask_hosts, release, show
from tests.declarations import G0, G1, SECTIONS, plan_of
from tests.providers.host_ledger import GPUS, HOLDER, HostLedger, record
from tests.providers.local_sshd import LocalSshd


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSshd]:
    """A host on which no unit runs."""
    server = LocalSshd(tmp_path_factory.mktemp("sshd"))
    server.executable("systemctl", "#!/bin/sh\necho inactive\nexit 3\n")
    yield server
    server.stop()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostLedger:
    made = HostLedger(tmp_path)
    monkeypatch.setattr(berth_host, "PROGRAM", str(made.program))
    return made


def claimed(reached: LocalSshd, *records: ClaimRecord) -> None:
    async def claim() -> None:
        async with open_session(reached.ssh) as session:
            await ledger.claim(session, "alpha", records[0].owner, records)

    asyncio.run(claim())


def shown(found: dict[str, HostClaims], *stacks: str) -> tuple[bool, str]:
    printed = io.StringIO()
    good = show(Console(file=printed, width=250), plan_of(SECTIONS), found, stacks)
    return good, printed.getvalue()


def row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if name in line]
    return [cell.strip() for cell in line.split("│")[1:-1]]


def of(name: str, *gpus: str, **more: Any) -> ClaimRecord:
    values = {"name": name, "owner": HOLDER, "stack": "berth/dev", "roles": ["guard"], **more}
    return ledger.record_of(values | {"gpus": [{"uuid": gpu, "mib": 20309} for gpu in gpus]})


def test_each_gpu_of_each_claim_is_a_row_with_its_index_owner_and_memory() -> None:
    since = "2026-01-02T03:04:05Z"
    good, text = shown({"alpha": HostClaims([of("one", G1, since=since)])}, "berth/dev")
    assert good
    assert row(text, "one")[:6] == ["alpha", "1", "20309", "one", HOLDER, "guard"]
    assert since in text
    both = shown({"alpha": HostClaims([of("wide", G0, G1)])}, "berth/dev")[1]
    assert [line.split("│")[2].strip() for line in both.splitlines() if "wide" in line] == [
        "0",
        "1",
    ]


def test_a_claim_whose_stack_has_no_config_here_is_marked_and_a_persons_is_not() -> None:
    found = [of("ours", G0), of("gone", G0, stack="berth/old"), of("by-hand", G1, stack="")]
    text = shown({"alpha": HostClaims(found)}, "berth/dev")[1]
    assert row(text, "gone")[-1] == "no such stack here"
    assert row(text, "ours")[-1] == ""
    assert row(text, "by-hand")[-1] == "made by hand"


def test_what_leaves_and_what_is_shared_is_said() -> None:
    text = shown({"alpha": HostClaims([of("one", G0, leaving=True, shared=True)])}, "berth/dev")[1]
    assert row(text, "one")[-1] == "shared, leaving"


def test_a_host_without_a_ledger_does_not_hide_the_others(
    reached: LocalSshd, host: HostLedger
) -> None:
    host.program.unlink()
    found = ask_hosts({"beta": reached.ssh})
    good, text = shown({**found, "alpha": HostClaims([of("one", G0)])}, "berth/dev")
    assert not good
    assert "beta" in text
    assert "bring the host's own stack up" in text
    assert row(text, "one")


def test_a_released_claim_says_whose_it_was_and_is_gone(
    reached: LocalSshd, host: HostLedger
) -> None:
    stays, goes = record("big", 0, 1), record("small", 2)
    claimed(reached, stays, goes)
    said = release({"alpha": reached.ssh}, goes.name, unload=False)
    assert f"{goes.name}, which {HOLDER} had since 20" in said
    assert f"{GPUS[2]} (20309 MiB)" in said
    assert sorted(host.records()) == [stays.name]


def test_what_a_person_holds_is_released_by_its_name_too(
    reached: LocalSshd, host: HostLedger
) -> None:
    host.call("hold", "--gpu", "3", "--mib", "8000", "--owner", "anna: notebook")
    (name,) = host.records()
    assert "anna: notebook" in release({"alpha": reached.ssh}, name, unload=False)
    assert host.records() == {}


def test_a_wrong_name_releases_nothing_and_lists_the_right_ones(
    reached: LocalSshd, host: HostLedger
) -> None:
    claimed(reached, record("small", 2))
    with pytest.raises(Refusal) as caught:
        release({"alpha": reached.ssh}, "berth/dev/shop.small", unload=False)
    assert "alpha: berth/dev/shop.small/triton@2" in caught.value.fix
    assert len(host.records()) == 1


def test_a_name_that_is_on_two_hosts_is_released_on_neither(
    reached: LocalSshd, host: HostLedger
) -> None:
    claimed(reached, record("small", 2))
    ssh = {"alpha": reached.ssh, "beta": reached.ssh}
    with pytest.raises(Refusal, match="several hosts: alpha, beta") as caught:
        release(ssh, "berth/dev/shop.small/triton@2", unload=False)
    assert "--host" in caught.value.fix
    assert len(host.records()) == 1
