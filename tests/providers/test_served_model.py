"""A server of one model's own that does not come up, and who serves in its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.providers import berth_host, ledger
from components.providers.served_model import ServedModelProvider
from models.refusal import Refusal
from tests.providers.host_ledger import GPUS, HOLDER, HostLedger, record
from tests.providers.local_sshd import LocalSshd

PROVIDER = ServedModelProvider()
FALLBACK = replace(record("stand-in", 0), instead_of="berth/dev/shop.big/shop-architect")


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSshd]:
    """A host on which every unit ends as soon as it is started, and says why."""
    server = LocalSshd(tmp_path_factory.mktemp("sshd"))
    server.executable(
        "systemctl",
        '#!/bin/sh\n[ "$1" = show ] && { echo 0; exit; }\n'
        '[ "$1" = is-active ] || { echo "$@" >> ' + str(server.place) + "/asked; exit 1; }\n"
        "echo failed\nexit 3\n",
    )
    server.executable("journalctl", "#!/bin/sh\necho 'RuntimeError: CUDA driver is too old'\n")
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def host(reached: LocalSshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostLedger:
    """Its ledger; the gate lets every unit start but one that is called `shut`."""
    made = HostLedger(tmp_path)
    reached.executable(
        "berth-host",
        f'#!/bin/sh\n[ "$1" = gate ] || exec {made.program} "$@"\n'
        '[ "$2" != shut ] || { echo "GPU 0 is claimed by berth/dev/desk" >&2; exit 1; }\n',
    )
    monkeypatch.setattr(berth_host, "PROGRAM", "berth-host")
    return made


def props(reached: LocalSshd, **changed: Any) -> dict[str, Any]:
    """As the engine hands them over: every number a float."""
    return {
        "ssh": reached.ssh,
        "host": "alpha",
        "unit": "shop-architect.service",
        "engine": "vllm",
        "port": 8210.0,
        "model": "architect",
        "incarnation": "c1/0",
        "prepare": f"echo prepared >> {reached.place}/asked\n",
        "gpus": GPUS[:1],
        "claim_mib": 20309.0,
        "owner": HOLDER,
        "holder": HOLDER,
        "claim_name": "berth/dev/shop.big/shop-architect",
        "arguments": {},
        "load_timeout_s": 5.0,
        "unload_timeout_s": 5.0,
        "canary_timeout_s": 5.0,
        "roles": ["architect", "worker"],
        "fallback": ledger.declared(FALLBACK),
    } | changed


def test_with_a_fallback_it_fails_with_the_reason_and_the_run_goes_on(reached: LocalSshd) -> None:
    outs = PROVIDER.create(props(reached)).outs or {}
    assert outs["state"] == "FAILED"
    assert outs["attempt"]
    assert "shop-architect: architect does not load" in outs["reason"]
    assert "start --quiet shop-architect.service" in (reached.place / "asked").read_text()
    assert not PROVIDER.diff("x", outs, props(reached)).changes


def test_it_is_prepared_before_it_is_started_and_again_for_another_environment(
    reached: LocalSshd,
) -> None:
    asked = reached.place / "asked"
    asked.unlink(missing_ok=True)
    outs = PROVIDER.create(props(reached)).outs or {}
    assert asked.read_text().splitlines()[0] == "prepared"
    other = props(reached, prepare=f"echo anew >> {asked}\n")
    PROVIDER.update("x", outs | {"state": "READY"}, other)
    assert asked.read_text().splitlines()[-1] == "anew"


def test_one_that_cannot_be_prepared_is_not_started(reached: LocalSshd) -> None:
    asked = reached.place / "asked"
    asked.unlink(missing_ok=True)
    with pytest.raises(Refusal, match="cannot be prepared: no space left"):
        PROVIDER.create(props(reached, prepare="echo no space left >&2; exit 1\n"))
    assert not asked.exists()


def test_one_whose_gate_is_shut_says_who_is_there(reached: LocalSshd) -> None:
    with pytest.raises(Refusal, match=r"shut\.service may not start: GPU 0 is claimed by"):
        PROVIDER.create(props(reached, unit="shut.service"))


def test_it_is_left_at_that_over_a_refresh_and_a_note(reached: LocalSshd) -> None:
    outs = PROVIDER.create(props(reached)).outs or {}
    read = PROVIDER.read("x", outs)
    assert (read.id, read.outs) == ("x", outs)
    noted = PROVIDER.update("x", outs, props(reached, owner="another")).outs or {}
    assert noted["attempt"] == outs["attempt"]
    tried = PROVIDER.update("x", outs, props(reached, load_timeout_s=6.0)).outs or {}
    assert tried["attempt"] != outs["attempt"]


def test_without_one_it_is_refused_and_says_that_nothing_serves_its_roles(
    reached: LocalSshd, host: HostLedger
) -> None:
    with pytest.raises(Refusal) as caught:
        PROVIDER.create(props(reached, fallback=None))
    assert "architect does not load" in caught.value.cause
    assert "Nothing serves architect and worker now" in caught.value.consequence
    assert host.records() == {}


def test_one_that_failed_is_deleted_without_stopping_anything(
    reached: LocalSshd, host: HostLedger
) -> None:
    outs = PROVIDER.create(props(reached)).outs or {}
    before = (reached.place / "asked").read_text()
    PROVIDER.delete("x", outs)
    assert (reached.place / "asked").read_text() == before
    assert host.records() == {}
