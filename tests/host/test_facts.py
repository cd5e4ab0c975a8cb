"""What a host is, from what its commands print; the commands are scripts on PATH."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from host import facts

Program = Callable[[str, str], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a program on an otherwise empty PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return write


GPU = "GPU-00000000-0000-0000-0000-000000000000"


def test_gpus_are_read_row_by_row(program: Program) -> None:
    program("nvidia-smi", f"echo '{GPU}, 0, NVIDIA L4, 580.105.08, 23034, 12, 22553'")
    (gpu,) = facts.gpus()["found"]
    assert (gpu["uuid"], gpu["index"], gpu["memory.total"]) == (GPU, "0", "23034")


def test_the_gpus_beside_a_lost_one_are_found(program: Program) -> None:
    lost = "Unable to determine the device handle for GPU3: 0000:04:00.0: Unknown Error"
    program(
        "nvidia-smi", f"echo '{lost}'; echo '{GPU}, 0, NVIDIA L4, 580, 23034, 0, 22566'; exit 15"
    )
    assert [gpu["uuid"] for gpu in facts.gpus()["found"]] == [GPU]


def test_what_a_failing_driver_says_is_kept(program: Program) -> None:
    program("nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not talk'; exit 9")
    found = facts.gpus()
    assert (found["status"], found["found"]) == (9, [])
    assert "has failed" in found["said"]


def test_a_process_name_may_hold_commas(program: Program) -> None:
    program("nvidia-smi", f"echo '{GPU}, 42, /usr/bin/a, b, 3000'")
    assert facts.gpu_processes() == [
        {"gpu": GPU, "pid": "42", "name": "/usr/bin/a,b", "mib": "3000"}
    ]


@pytest.mark.usefixtures("program")
def test_missing_programs_are_empty_facts() -> None:
    assert facts.gpus() == {"status": 127, "said": "", "found": []}
    assert facts.docker("root")["installed"] is False
    assert facts.units() == {}


def test_a_docker_that_does_not_answer_is_told_from_a_missing_one(program: Program) -> None:
    program("docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    found = facts.docker("root")
    assert (found["installed"], found["version"]) == (True, "")
    assert "Cannot connect" in found["said"]


def test_our_containers_are_listed_with_instance_and_ports(program: Program) -> None:
    row = r"triton-0-1a\ttriton@0\trunning\t127.0.0.1:8000->8000/tcp"
    program("docker", f"case $1 in ps) printf '{row}\\n' ;; *) echo 28.2.2 ;; esac")
    (container,) = facts.docker("root")["containers"]
    assert container["instance"] == "triton@0"
    assert ":8000->" in container["ports"]


def test_weights_are_those_directories_with_and_without_a_config(tmp_path: Path) -> None:
    (tmp_path / "weights/good").mkdir(parents=True)
    (tmp_path / "weights/good/config.json").touch()
    (tmp_path / "weights/bad").mkdir()
    (tmp_path / "weights/file").touch()
    assert facts.weights(tmp_path) == {"bad": False, "good": True}
    assert facts.weights(tmp_path / "nowhere") == {}


def test_free_disk_is_that_of_the_nearest_directory_there(tmp_path: Path) -> None:
    assert facts.free_mib(tmp_path / "not/yet/there") > 0
