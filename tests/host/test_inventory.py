"""What a host is, from what its commands print; the commands are scripts on PATH."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from host import docker, gpus, inventory
from models.inventory import Inventory
from tests.host.conftest import BerthHost, Program, record

GPU = "GPU-00000000-0000-0000-0000-000000000000"
ID = "0123456789abcdef" * 4


def test_gpus_are_read_row_by_row(program: Program) -> None:
    program("nvidia-smi", f"echo '{GPU}, 0, NVIDIA L4, 580.105.08, 23034, 468, 12'")
    found = gpus.gpus()
    assert found["driver"] == "580.105.08"
    assert found["gpus"]["found"] == [
        {
            "uuid": GPU,
            "index": 0,
            "name": "NVIDIA L4",
            "memory_mib": 23034,
            "reserved_mib": 468,
            "used_mib": 12,
        }
    ]


def test_the_gpus_beside_a_lost_one_are_found(program: Program) -> None:
    lost = "Unable to determine the device handle for GPU3: 0000:04:00.0: Unknown Error"
    row = f"{GPU}, 0, NVIDIA L4, 580, 23034, 468, 0"
    program("nvidia-smi", f"echo '{lost}'; echo '{row}'; exit 15")
    assert [gpu["uuid"] for gpu in gpus.gpus()["gpus"]["found"]] == [GPU]


def test_what_a_failing_driver_says_is_kept(program: Program) -> None:
    program("nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not talk'; exit 9")
    found = gpus.gpus()["gpus"]
    assert (found["status"], found["found"]) == (9, [])
    assert "has failed" in found["said"]


def test_a_process_name_may_hold_commas(program: Program) -> None:
    program("nvidia-smi", f"echo '{GPU}, 42, /usr/bin/a, b, 3000'; echo '{GPU}, 7, x, [N/A]'")
    assert gpus.processes() == [
        {"gpu": GPU, "pid": 7, "name": "x", "mib": 0},
        {"gpu": GPU, "pid": 42, "name": "/usr/bin/a,b", "mib": 3000},
    ]


@pytest.mark.parametrize(
    ("cgroup", "container"),
    [
        (f"0::/system.slice/docker-{ID}.scope\n", ID),
        (f"0::/system.slice/docker-{ID}.scope/init/worker\n", ID),
        (f"12:memory:/docker/{ID}\n1:name=systemd:/docker/{ID}\n", ID),
        (f"0::/docker/{'f' * 64}/docker/{ID}\n", ID),
        ("0::/user.slice/user-0.slice/session-1.scope\n", ""),
    ],
)
def test_a_process_is_known_by_its_control_group(
    tmp_path: Path, cgroup: str, container: str
) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42/cgroup").write_text(cgroup)
    assert gpus.container_of(42, tmp_path) == container
    assert gpus.container_of(43, tmp_path) == ""


@pytest.mark.usefixtures("program")
def test_missing_programs_are_empty_answers() -> None:
    assert gpus.gpus() == {"gpus": {"status": 127, "said": "", "found": []}, "driver": ""}
    assert docker.docker("root")["installed"] is False
    assert docker.docker("root")["nvidia_runtime"] == ""
    assert inventory.units() == {}


def test_a_docker_that_does_not_answer_is_told_from_a_missing_one(program: Program) -> None:
    program("docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    found = docker.docker("root")
    assert (found["installed"], found["version"]) == (True, "")
    assert "Cannot connect" in found["said"]


def test_a_systemd_that_does_not_answer_has_no_units(program: Program) -> None:
    program("systemctl", "echo 'System has not been booted with systemd' >&2; exit 1")
    assert inventory.units() == {}


def test_the_toolkits_version_is_that_of_whichever_program_is_there(program: Program) -> None:
    program("nvidia-container-cli", "echo 'cli-version: 1.17.4'; echo 'lib-version: 1.17.4'")
    assert docker.docker("root")["nvidia_runtime"] == "1.17.4"
    program("nvidia-ctk", "echo 'NVIDIA Container Toolkit CLI version 1.18.2'; echo 'commit: ab'")
    assert docker.docker("root")["nvidia_runtime"] == "1.18.2"


def test_our_containers_are_listed_with_ports_though_they_do_not_run(program: Program) -> None:
    about = {
        "Id": ID,
        "Name": "/triton-0-1a",
        "Config": {
            "Image": "triton@sha256:aa",
            "Labels": {"berth.instance": "triton@0", "berth.stack": "dev"},
        },
        "State": {"Status": "exited"},
        "HostConfig": {
            "PortBindings": {
                "8002/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8100"}],
                "8000/tcp": [{"HostIp": "", "HostPort": "8000"}],
            }
        },
    }
    answers = f"ps) echo {ID} ;; inspect) echo '{json.dumps([about])}' ;;"
    program("docker", f"case $1 in {answers} *) echo 28.2.2 ;; esac")
    assert docker.docker("root")["containers"] == [
        {
            "id": ID,
            "name": "triton-0-1a",
            "instance": "triton@0",
            "stack": "dev",
            "image": "triton@sha256:aa",
            "state": "exited",
            "ports": [
                {"address": "0.0.0.0", "port": 8000, "inside": 8000},
                {"address": "127.0.0.1", "port": 8100, "inside": 8002},
            ],
        }
    ]


def test_free_disk_is_that_of_the_nearest_directory_there(tmp_path: Path) -> None:
    assert inventory.free_mib(tmp_path / "not/yet/there") > 0


def test_what_runs_beside_the_instances_is_told_with_its_port_and_stack(
    tmp_path: Path,
) -> None:
    noted = {"unit": "berth-gateway.service", "port": 8443, "stack": "dev"}
    (tmp_path / "berth-gateway.json").write_text(json.dumps(noted))
    (tmp_path / "half.json").write_text("{")
    found = inventory.services(tmp_path)
    assert found == {"berth-gateway.service": {"port": 8443, "stack": "dev"}}


def test_the_whole_answer_is_an_inventory(host: BerthHost, tmp_path: Path) -> None:
    (tmp_path / "data/weights/bad").mkdir(parents=True)
    asked = {"user": "root", "data_dir": str(tmp_path / "data")}
    host.claim("berth/dev/shop", record("berth/dev/shop", 2))
    answer = host.ask("inventory", asked)
    found = Inventory.model_validate(answer)
    assert [gpu.index for gpu in found.gpus.found] == [0, 1, 2, 3]
    assert [claim.owner for claim in found.claims] == ["berth/dev/shop"]
    assert found.weights["bad"].trouble
    assert found.ledger_trouble == ""
    assert json.loads(found.model_dump_json()).keys() == answer.keys()
    assert (host.ledger.parent / "weights.json").exists()


def test_asking_a_host_that_is_not_set_up_leaves_nothing_there(
    host: BerthHost, tmp_path: Path
) -> None:
    (tmp_path / "data/weights/bad").mkdir(parents=True)
    answer = host.ask("inventory", {"user": "root", "data_dir": str(tmp_path / "data")})
    assert answer["claims"] == []
    assert not host.ledger.parent.exists()


def test_a_ledger_that_cannot_be_read_is_told_and_hides_nothing_else(
    host: BerthHost, tmp_path: Path
) -> None:
    host.ledger.parent.mkdir()
    host.ledger.write_text("scrap")
    answer = host.ask("inventory", {"user": "root", "data_dir": str(tmp_path)})
    assert "not a ledger" in answer["ledger_trouble"]
    assert len(answer["gpus"]["found"]) == 4


def test_a_card_that_was_exchanged_is_known_to_the_ledger_after_an_inventory(
    host: BerthHost, tmp_path: Path
) -> None:
    host.claim("berth/dev/shop", record("berth/dev/shop", 2))
    row = f"{GPU}, 0, NVIDIA L40S, 580, 46068, 600, 0"
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\necho '{row}'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    exchanged = BerthHost(host.file, host.ledger, tmp_path)
    exchanged.ask("inventory", {"user": "root", "data_dir": str(tmp_path)})
    known = {gpu["uuid"]: gpu["cuda_mib"] for gpu in host.ask("claims")["gpus"]}
    assert known[GPU] == 46068 - 600


def test_the_installed_version_is_told(tmp_path: Path) -> None:
    (tmp_path / "berth-host").write_bytes(b"a program")
    asked = {"user": "root", "data_dir": str(tmp_path)}
    answer = inventory.take(asked, tmp_path / "none/ledger.db", tmp_path / "berth-host")
    assert answer["berth_host"] == hashlib.sha256(b"a program").hexdigest()[:12]
    assert inventory.take(asked, tmp_path / "none/l", tmp_path / "none")["berth_host"] == ""


def test_the_program_needs_nothing_of_where_it_is_run(built: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-IS", str(built), "--help"],
        cwd=tmp_path,
        env={},
        text=True,
        capture_output=True,
        check=True,
    )
    assert "claim" in done.stdout
