"""The gate of a unit's start, as systemd runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.renderers import unit
from tests.declarations import G0, SECTIONS, plan_of
from tests.host.conftest import GPUS, BerthHost, record
from tests.renderers.engines.served import placed

ANNA = "berth/dev/shop"


@pytest.fixture
def instances(tmp_path: Path) -> Path:
    """As the host stack `berth/dev` writes them, and one of another host stack."""
    folder = tmp_path / "instances"
    folder.mkdir()
    for instance in plan_of(SECTIONS).instances:
        (folder / f"{instance.id}.env").write_text(unit.environment(instance, "c", "berth/dev"))
    (folder / "3.env").write_text(f"GPUS={GPUS[3]}\nHOST_STACK=berth/other\nLOADS=on-demand\n")
    return folder


def test_an_empty_host_lets_every_unit_start(host: BerthHost, instances: Path) -> None:
    done = host.run("gate", "triton@0", "--instances", str(instances))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_unit_starts_under_claims_of_its_neighbours(host: BerthHost, instances: Path) -> None:
    assert GPUS[0] == G0
    host.claim(ANNA, record(ANNA, 0, 1, instance="triton@wide-01"))
    for name in ("triton@0", "triton@wide-01.service"):
        assert host.run("gate", name, "--instances", str(instances)).returncode == 0


def test_a_neighbour_that_is_just_being_made_anew_is_still_one(
    host: BerthHost, instances: Path
) -> None:
    host.claim(ANNA, record(ANNA, 0, 1, instance="triton@wide-01"))
    (instances / "wide-01.env").unlink()
    gate = ("gate", "triton@0", "--instances", str(instances))
    assert host.run(*gate).returncode == 1
    (instances / "wide-01.key").touch()
    assert host.run(*gate).returncode == 0


def test_what_a_person_holds_keeps_a_unit_from_starting(host: BerthHost, instances: Path) -> None:
    host.run("hold", "--gpu", "0", "--owner", "anna: notebook")
    done = host.run("gate", "triton@0", "--instances", str(instances))
    assert done.returncode == 1
    assert f"GPU 0 ({GPUS[0]}) is claimed by anna: notebook since 20" in done.stderr
    assert "berth-host release --name 'held/0-1'" in done.stderr
    host.run("release", "--name", "held/0-1")
    assert host.run("gate", "triton@0", "--instances", str(instances)).returncode == 0


def test_an_instance_of_another_host_stack_is_a_stranger(host: BerthHost, instances: Path) -> None:
    host.claim(ANNA, record(ANNA, 0, instance="triton@3"))
    assert host.run("gate", "triton@0", "--instances", str(instances)).returncode == 1


def test_a_ledger_that_cannot_be_read_starts_nothing(host: BerthHost, instances: Path) -> None:
    host.ledger.parent.mkdir()
    host.ledger.write_text("scrap")
    done = host.run("gate", "triton@0", "--instances", str(instances))
    assert done.returncode == 1
    assert "not a ledger" in done.stderr


def test_a_unit_whose_gpus_are_not_known_does_not_start(host: BerthHost, instances: Path) -> None:
    (instances / "0.env").write_text("CONTAINER=c\n")
    done = host.run("gate", "triton@0", "--instances", str(instances))
    assert done.returncode == 1
    assert "does not say which GPUs" in done.stderr


@pytest.fixture
def servers(instances: Path) -> Path:
    """A demo's server of one model's own, on the GPUs of the wide instance."""
    folder = instances.parent / "servers"
    folder.mkdir()
    placement = placed("vllm")
    assert placement.server is not None
    text = unit.server_environment(placement, "c", "berth/dev")
    (folder / f"{placement.server.name}.env").write_text(text)
    return folder


def test_a_server_with_a_model_for_life_starts_under_its_own_claim_only(
    host: BerthHost, instances: Path, servers: Path
) -> None:
    asked = ("gate", "shop-architect.service", "--instances", instances, "--servers", servers)
    gate = tuple(map(str, asked))
    host.claim(ANNA, record(ANNA, 0, instance="triton@0"))
    refused = host.run(*gate)
    assert refused.returncode == 1
    assert "shop-architect is not started" in refused.stderr
    host.claim(ANNA, record(ANNA, 0, 1, instance="shop-architect"))
    assert host.run(*gate).returncode == 0


def test_triton_starts_beside_a_server_that_stands_on_its_host_stack(
    host: BerthHost, instances: Path, servers: Path
) -> None:
    host.claim(ANNA, record(ANNA, 0, 1, instance="shop-architect"))
    places = ("--instances", str(instances), "--servers", str(servers))
    assert host.run("gate", "triton@wide-01", *places).returncode == 0
    (servers / "shop-architect.env").unlink()
    assert host.run("gate", "triton@wide-01", *places).returncode == 1
