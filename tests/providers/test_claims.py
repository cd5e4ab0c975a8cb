"""Claims as a resource: a real `berth-host` keeps the ledger, behind a real sshd."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.providers import berth_host, ledger
from components.providers.claims import ClaimsProvider
from models.claim_record import ClaimRecord
from models.refusal import Refusal
from tests.providers.host_ledger import GPUS, HOLDER, HostLedger, record
from tests.providers.local_sshd import LocalSshd

PROVIDER = ClaimsProvider()
OTHER = "berth/desk/frontdesk"


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


def inputs(reached: LocalSshd, *records: ClaimRecord, holder: str = HOLDER) -> dict[str, Any]:
    """As the engine hands them over: every number a float."""
    claims = [ledger.declared(each) for each in records]
    for claim in claims:
        claim["http_port"] = float(claim["http_port"])
        claim["gpus"] = [{"uuid": g["uuid"], "mib": float(g["mib"])} for g in claim["gpus"]]
    return {"ssh": reached.ssh, "host": "alpha", "holder": holder, "claims": claims}


def outs(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = result.outs
    return found


def refused(props: dict[str, Any]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        PROVIDER.create(props)
    return caught.value


def test_claims_live_from_create_to_delete_on_their_own_outputs(
    reached: LocalSshd, host: HostLedger
) -> None:
    wanted = inputs(reached, record("big", 0, 1), record("small", 2))
    created = PROVIDER.create(wanted)
    assert sorted(host.records()) == [
        "berth/dev/shop.big/triton@0",
        "berth/dev/shop.small/triton@2",
    ]
    assert not PROVIDER.diff(created.id, outs(created), wanted).changes

    read = PROVIDER.read(created.id, outs(created))
    assert read.id == created.id
    assert not PROVIDER.diff(created.id, read.outs or {}, wanted).changes
    assert read.inputs is not None
    assert sorted(read.inputs) == sorted(wanted)

    PROVIDER.delete(created.id, read.outs or {})
    assert host.records() == {}
    PROVIDER.delete(created.id, read.outs or {})


def test_the_order_of_claims_is_no_difference(reached: LocalSshd) -> None:
    big, small = record("big", 0, 1), record("small", 2)
    before = inputs(reached, big, small) | {"leaving": []}
    assert not PROVIDER.diff("x", before, inputs(reached, small, big)).changes
    more = inputs(reached, big, record("small", 2, mib=100))
    assert PROVIDER.diff("x", before, more).changes


def test_the_loser_gets_none_of_its_claims_and_is_told_of_the_winner(
    reached: LocalSshd, host: HostLedger
) -> None:
    PROVIDER.create(inputs(reached, record("small", 1)))
    before = host.records()
    rival = record("guard", 1, holder=OTHER)
    free = record("greeter", 3, holder=OTHER)
    refusal = refused(inputs(reached, free, rival, holder=OTHER))
    assert f"GPU 1 ({GPUS[1]})" in refusal.cause
    assert f"{HOLDER}: shop-small" in refusal.cause
    assert "host alpha" in refusal.at
    assert host.records() == before


def test_of_many_at_the_same_moment_one_wins(reached: LocalSshd, host: HostLedger) -> None:
    holders = [f"berth/stack{number}/demo{number}" for number in range(8)]
    together = threading.Barrier(len(holders))
    said: dict[str, str] = {}

    def race(holder: str) -> None:
        wanted = inputs(reached, record("m", 0, holder=holder), holder=holder)
        together.wait()
        try:
            PROVIDER.create(wanted)
        except Refusal as refusal:
            said[holder] = refusal.cause

    racers = [threading.Thread(target=race, args=(holder,)) for holder in holders]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    (winner,) = set(holders) - set(said)
    assert all(f"{winner}: " in cause for cause in said.values())
    assert [each["owner"] for each in host.records().values()] == [winner]


def test_a_claim_released_by_hand_shows_and_is_claimed_again(
    reached: LocalSshd, host: HostLedger
) -> None:
    wanted = inputs(reached, record("big", 0, 1), record("small", 2))
    created = PROVIDER.create(wanted)
    host.call("release", "--name", "berth/dev/shop.small/triton@2")
    read = PROVIDER.read(created.id, outs(created))
    assert PROVIDER.diff(created.id, read.outs or {}, wanted).changes
    PROVIDER.update(created.id, read.outs or {}, wanted)
    assert len(host.records()) == 2


def test_a_ledger_that_is_gone_makes_the_claims_gone(reached: LocalSshd, host: HostLedger) -> None:
    created = PROVIDER.create(inputs(reached, record("small", 2)))
    host.database.unlink()
    assert PROVIDER.read(created.id, outs(created)).id == ""
    PROVIDER.delete(created.id, outs(created))


def test_a_ledger_that_cannot_be_read_is_refused_and_left_as_it_is(
    reached: LocalSshd, host: HostLedger
) -> None:
    created = PROVIDER.create(inputs(reached, record("small", 2)))
    host.database.write_bytes(b"no database" * 500)
    for call in (
        lambda: PROVIDER.read(created.id, outs(created)),
        lambda: PROVIDER.update(created.id, outs(created), inputs(reached, record("big", 1))),
        lambda: PROVIDER.delete(created.id, outs(created)),
    ):
        with pytest.raises(Refusal, match="not a ledger"):
            call()
    assert host.database.read_bytes() == b"no database" * 500


def test_a_host_that_is_not_set_up_is_refused_for_create_and_gone_for_read(
    reached: LocalSshd, host: HostLedger
) -> None:
    host.program.unlink()
    wanted = inputs(reached, record("small", 2))
    refusal = refused(wanted)
    assert "berth-host" in refusal.cause
    assert "bring the host's own stack up first" in refusal.fix
    assert PROVIDER.read("x", wanted).id == ""
    PROVIDER.delete("x", wanted)


def test_a_moved_model_that_is_not_loaded_leaves_no_claim_behind(
    reached: LocalSshd, host: HostLedger
) -> None:
    created = PROVIDER.create(inputs(reached, record("small", 2)))
    updated = PROVIDER.update(created.id, outs(created), inputs(reached, record("small", 3)))
    assert sorted(host.records()) == ["berth/dev/shop.small/triton@3"]
    assert not PROVIDER.diff("x", outs(updated), inputs(reached, record("small", 3))).changes


def test_a_refused_change_keeps_what_was_claimed(reached: LocalSshd, host: HostLedger) -> None:
    created = PROVIDER.create(inputs(reached, record("small", 2)))
    PROVIDER.create(inputs(reached, record("guard", 3, holder=OTHER), holder=OTHER))
    before = host.records()
    with pytest.raises(Refusal, match="GPU 3"):
        PROVIDER.update(created.id, outs(created), inputs(reached, record("small", 3)))
    assert host.records() == before


def test_a_renamed_demo_takes_its_gpus_with_it(reached: LocalSshd, host: HostLedger) -> None:
    created = PROVIDER.create(inputs(reached, record("small", 2)))
    renamed = "berth/dev/bazaar"
    wanted = inputs(reached, record("small", 2, holder=renamed), holder=renamed)
    diff = PROVIDER.diff(created.id, outs(created), wanted)
    assert (diff.changes, diff.replaces) == (True, [])
    PROVIDER.update(created.id, outs(created), wanted)
    assert [each["owner"] for each in host.records().values()] == [renamed]
