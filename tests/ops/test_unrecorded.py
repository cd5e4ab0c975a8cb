"""What a killed run had begun, from the state that it left."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components import providers
from components.providers import berth_host, ledger
from components.providers.claims import ClaimsProvider
from components.providers.image_versions import ImageVersionsProvider
from components.providers.plain_refusals import BerthProvider
from components.providers.running_unit import RunningUnitProvider
from ops.unrecorded import PROVIDERS, unmake
from tests.providers.host_ledger import HOLDER, HostLedger, record
from tests.providers.local_sshd import LocalSshd

KIND = "pulumi-python:dynamic/berth:"
CLAIMS = f"{KIND}Claims"
LEAVE_NOTHING = {ImageVersionsProvider, RunningUnitProvider}
"""What they make goes with something else, so their `delete` says why it does nothing."""


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


def test_all_that_makes_something_on_a_host_is_known() -> None:
    for module in pkgutil.iter_modules(providers.__path__):
        importlib.import_module(f"components.providers.{module.name}")
    undoing = {each for each in BerthProvider.__subclasses__() if "delete" in vars(each)}
    assert set(PROVIDERS.values()) == undoing - LEAVE_NOTHING
    assert list(PROVIDERS) == [
        KIND + each.__name__.removesuffix("Provider") for each in PROVIDERS.values()
    ]


@pytest.mark.parametrize(("kind", "role"), [("DemoRoutes", None), ("RoleRoute", "sentry")])
def test_what_a_gateway_was_being_told_is_taken_back(
    reached: LocalSshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, role: str | None
) -> None:
    """A demo's file there has its keys, and its host's stack refuses to go while it is there."""
    monkeypatch.setattr(berth_host, "PROGRAM", "berth-host-of-a-gateway")
    reached.executable(
        "berth-host-of-a-gateway",
        f'#!/bin/sh\necho "$*" > {tmp_path}/words\ncat > {tmp_path}/payload\necho "{{}}"\n',
    )
    making = {"ssh": reached.ssh, "host": "alpha", "demo": "shop", "role": role}
    assert unmake(state(KIND + kind, "creating", making)) == [f"{kind} alpha"]
    assert (tmp_path / "words").read_text().split()[:2] == ["routes", "remove"]
    assert json.loads((tmp_path / "payload").read_text()) == {"demo": "shop", "role": role}


def test_a_server_that_was_being_started_is_ended(
    reached: LocalSshd, inputs: dict[str, Any], tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    reached.executable(
        "systemctl",
        "#!/bin/sh\n"
        f'[ "$1" = disable ] && echo "$*" >> {asked}\n'
        f'[ "$1" = is-active ] && {{ [ -e {asked} ] && echo inactive || echo activating; }}\n',
    )
    making = inputs | {
        "unit": "shop-architect.service",
        "engine": "vllm",
        "port": 8210,
        "model": "architect",
        "gpus": [],
        "claim_mib": 1,
        "owner": HOLDER,
        "claim_name": "berth/dev/shop.big/shop-architect",
        "load_timeout_s": 5,
        "unload_timeout_s": 5,
        "canary_timeout_s": 5,
    }
    assert unmake(state(f"{KIND}ServedModel", "creating", making)) == ["ServedModel alpha"]
    assert asked.read_text() == "disable --now --quiet shop-architect.service\n"
