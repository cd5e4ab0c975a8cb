"""What a killed run had begun, from the state that it left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.providers import berth_host, ledger
from components.providers.claims import ClaimsProvider
from ops.unrecorded import unmake
from tests.providers.host_ledger import HOLDER, HostLedger, record
from tests.providers.local_sshd import LocalSshd

CLAIMS = "pulumi-python:dynamic/berth:Claims"


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSshd]:
    """A host on which no unit runs."""
    server = LocalSshd(tmp_path_factory.mktemp("sshd"))
    server.executable("systemctl", "#!/bin/sh\necho inactive\nexit 3\n")
    yield server
    server.stop()


@pytest.fixture
def inputs(reached: LocalSshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    host = HostLedger(tmp_path)
    monkeypatch.setattr(berth_host, "PROGRAM", str(host.program))
    claims = [ledger.declared(record("small", 2))]
    made = {"ssh": reached.ssh, "host": "alpha", "holder": HOLDER, "claims": claims}
    ClaimsProvider().create(made)
    assert host.records()
    return made


def state(kind: str, doing: str, inputs: dict[str, Any]) -> dict[str, Any]:
    resource = {"urn": f"urn:pulumi:dev::berth::{kind}::alpha", "type": kind, "inputs": inputs}
    return {"deployment": {"pending_operations": [{"type": doing, "resource": resource}]}}


def test_a_claim_that_was_being_made_is_released(inputs: dict[str, Any]) -> None:
    said = unmake(state(CLAIMS, "creating", inputs | {"__provider": "…"}))
    assert said == ["Claims alpha"]
    assert ClaimsProvider().read("x", inputs).id == ""


@pytest.mark.parametrize(
    ("kind", "doing"), [(CLAIMS, "updating"), ("docker:index/container:Container", "creating")]
)
def test_what_the_state_knows_and_what_is_not_berths_is_left_to_the_destroy(
    inputs: dict[str, Any], kind: str, doing: str
) -> None:
    assert unmake(state(kind, doing, inputs)) == []
    assert ClaimsProvider().read("x", inputs).id == "x"


def test_a_state_that_no_run_was_killed_in_has_nothing_to_unmake() -> None:
    assert unmake({"deployment": {"resources": []}}) == []
    assert unmake({"deployment": None}) == []
