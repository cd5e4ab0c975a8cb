"""Claims that move while their models are loaded: a real Triton, a real `berth-host`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from components.providers import berth_host, ledger
from components.providers.claims import ClaimsProvider
from components.providers.ssh import open_session
from components.providers.ssh_shared import on_host
from components.providers.triton_model import TritonModelProvider
from components.providers.vacating import clear, in_its_way, others
from models.claim_record import ClaimRecord
from models.refusal import Refusal
from ops.claims import release
from tests.providers.host_ledger import HOLDER, HostLedger, record
from tests.triton.real_triton import GPUS, RealTriton

pytestmark = pytest.mark.triton
PROVIDER = ClaimsProvider()
MODELS = TritonModelProvider()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostLedger:
    made = HostLedger(tmp_path)
    monkeypatch.setattr(berth_host, "PROGRAM", str(made.program))
    return made


def claimed(triton: RealTriton, name: str, gpu: int, **more: Any) -> ClaimRecord:
    """A claim of a model on the one server that there is."""
    place: dict[str, Any] = {"http_port": triton.port, "control_key_file": str(triton.key_file)}
    return record(name, gpu, instance=f"triton@{gpu}", **place, **more)


def inputs(triton: RealTriton, *records: ClaimRecord) -> dict[str, Any]:
    claims = [ledger.declared(each) for each in records]
    return {"ssh": triton.sshd.ssh, "host": "sandbox", "holder": HOLDER, "claims": claims}


def load(triton: RealTriton, held: ClaimRecord, **told: Any) -> dict[str, Any]:
    """Have the claim's model loaded, as its own resource does."""
    gpus = [gpu.uuid for gpu in held.gpus]
    triton.entry(held.entry, gpus=gpus, mib=held.gpus[0].mib, **told)
    about: dict[str, Any] = {"gpus": gpus, "claim_mib": float(held.gpus[0].mib)}
    about |= {"holder": HOLDER, "claim_name": held.name, "instance": held.instance}
    return MODELS.create(triton.props(held.entry, **about)).outs or {}


def claim(triton: RealTriton, *records: ClaimRecord) -> dict[str, Any]:
    return PROVIDER.create(inputs(triton, *records)).outs or {}


def move(triton: RealTriton, olds: dict[str, Any], *records: ClaimRecord) -> dict[str, Any]:
    """What an `up` does with the claims: refresh, diff, update where that differs; then each load
    of theirs has its GPUs vacated."""
    read = PROVIDER.read("x", olds).outs or {}
    news = inputs(triton, *records)
    if not PROVIDER.diff("x", read, news).changes:
        return read
    outs = PROVIDER.update("x", read, news).outs or {}
    for each in records:
        vacate(triton, outs, each)
    return outs


def vacate(triton: RealTriton, claims: dict[str, Any], load: ClaimRecord) -> dict[str, Any]:
    """Have a load's GPUs vacated."""
    of = in_its_way(load.name, [gpu.uuid for gpu in load.gpus], 0, claims["conflicting"])
    about: dict[str, Any] = {"host": "sandbox", "holder": HOLDER, "vacates": of}
    on_host(triton.sshd.ssh, lambda session: clear(session, about))
    return about


def test_a_model_in_the_way_of_the_new_claims_is_unloaded_before_they_are_used(
    triton: RealTriton, host: HostLedger
) -> None:
    old, new = claimed(triton, "old-one", 0), claimed(triton, "new-one", 0)
    olds = claim(triton, old)
    load(triton, old, unload_s=1)
    move(triton, olds, new)
    assert triton.state(old.entry)["state"] == "UNAVAILABLE"
    assert triton.lifetimes(old.entry) == ["begin", "end"]
    assert sorted(host.records()) == [new.name]


def test_it_serves_until_everything_else_for_its_successor_is_there(
    triton: RealTriton, host: HostLedger
) -> None:
    old, new = claimed(triton, "serves", 0), claimed(triton, "succeeds", 0)
    olds = claim(triton, old)
    load(triton, old)
    outs = PROVIDER.update("x", olds, inputs(triton, new)).outs or {}
    assert triton.state(old.entry)["state"] == "READY"
    assert [each["name"] for each in outs["conflicting"]] == [old.name]
    vacated = vacate(triton, outs, new)
    assert triton.state(old.entry)["state"] == "UNAVAILABLE"
    assert sorted(host.records()) == [new.name]
    assert others({}, vacated)
    assert not others(vacated, vacated)
    assert not others(vacated, vacated | {"vacates": []})


def test_a_model_that_is_in_nobodys_way_serves_until_its_own_resource_goes(
    triton: RealTriton, host: HostLedger
) -> None:
    old, new = claimed(triton, "stays", 0), claimed(triton, "stays", 1)
    olds = claim(triton, old)
    outs = load(triton, old)
    moved = move(triton, olds, new)
    assert triton.state(old.entry)["state"] == "READY"
    assert host.records()[old.name]["leaving"]
    read = PROVIDER.read("x", moved)
    assert (read.inputs or {})["claims"] == inputs(triton, new)["claims"]
    MODELS.delete("x", outs)
    assert sorted(host.records()) == [new.name]


def test_a_model_made_anew_in_its_place_keeps_its_claim(
    triton: RealTriton, host: HostLedger
) -> None:
    held = claimed(triton, "anew", 0)
    claim(triton, held)
    MODELS.delete("x", load(triton, held))
    assert sorted(host.records()) == [held.name]


def test_a_run_killed_between_claim_and_unload_is_completed_by_the_next(
    triton: RealTriton, host: HostLedger
) -> None:
    old, new = claimed(triton, "cut-old", 0), claimed(triton, "cut-new", 0)
    olds = claim(triton, old)
    load(triton, old)

    async def only_the_claim() -> None:
        async with open_session(triton.sshd.ssh) as session:
            await ledger.claim(session, "sandbox", HOLDER, [new])

    asyncio.run(only_the_claim())
    assert host.records()[old.name]["leaving"]
    outs = move(triton, olds, new)
    assert sorted(host.records()) == [new.name]
    assert triton.state(old.entry)["state"] == "UNAVAILABLE"
    assert not PROVIDER.diff("x", PROVIDER.read("x", outs).outs or {}, inputs(triton, new)).changes


def test_a_leaving_model_that_nobody_deletes_goes_with_the_next_run(
    triton: RealTriton, host: HostLedger
) -> None:
    old, new = claimed(triton, "nobodys", 0), claimed(triton, "nobodys", 1)
    olds = claim(triton, old)
    load(triton, old)
    outs = move(triton, olds, new)
    assert host.records()[old.name]["leaving"]
    move(triton, outs, new)
    assert sorted(host.records()) == [new.name]


def test_a_model_that_gives_memory_to_another_is_unloaded_first(
    triton: RealTriton, host: HostLedger
) -> None:
    first = claimed(triton, "large", 0, mib=16000, shared=True)
    olds = claim(triton, first)
    load(triton, first)
    move(triton, olds, claimed(triton, "large", 0, mib=9000, shared=True))
    assert triton.state(first.entry)["state"] == "READY"  # its own resource loads it anew
    both = (
        claimed(triton, "large", 0, mib=8000, shared=True),
        claimed(triton, "small", 0, mib=9000, shared=True),
    )
    move(triton, olds, *both)
    assert triton.state(first.entry)["state"] == "UNAVAILABLE"
    assert len(host.records()) == 2


def test_a_model_that_no_resource_knows_is_unloaded_with_the_last_claim(
    triton: RealTriton, host: HostLedger
) -> None:
    held = claimed(triton, "unknown", 0)
    outs = claim(triton, held)
    load(triton, held)
    PROVIDER.delete("x", outs)
    assert triton.state(held.entry)["state"] == "UNAVAILABLE"
    assert host.records() == {}


def test_a_claim_whose_model_is_loaded_is_released_by_hand_only_with_its_unload(
    triton: RealTriton, host: HostLedger
) -> None:
    held = claimed(triton, "by-hand", 0)
    claim(triton, held)
    load(triton, held)
    ssh = {"sandbox": triton.sshd.ssh}
    with pytest.raises(Refusal) as caught:
        release(ssh, held.name, unload=False)
    assert "is loaded on triton@0" in caught.value.cause
    assert "--unload" in caught.value.fix
    assert sorted(host.records()) == [held.name]
    said = release(ssh, held.name, unload=True)
    assert HOLDER in said
    assert f"{GPUS[0]} (20309 MiB)" in said
    assert triton.state(held.entry)["state"] == "UNAVAILABLE"
    assert host.records() == {}
