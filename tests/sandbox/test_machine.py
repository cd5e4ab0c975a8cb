"""A daemon that was killed leaves its pid file; the next start must not believe it."""

import os
from pathlib import Path

import pytest

from sandbox.machine import forget_dead_daemons


@pytest.fixture
def pid_file(tmp_path: Path) -> Path:
    file = tmp_path / "containerd.pid"
    file.write_text(f"{os.getpid()}")
    return file


def program_now_named(proc: Path, name: str) -> None:
    (proc / f"{os.getpid()}").mkdir()
    (proc / f"{os.getpid()}" / "comm").write_text(f"{name}\n")


def test_a_pid_file_is_forgotten_when_another_program_has_its_number(
    pid_file: Path, tmp_path: Path
) -> None:
    program_now_named(tmp_path, "pytest")
    forget_dead_daemons({"containerd": pid_file}, proc=tmp_path)
    assert not pid_file.exists()


def test_a_pid_file_is_forgotten_when_its_process_is_gone(pid_file: Path, tmp_path: Path) -> None:
    forget_dead_daemons({"containerd": pid_file}, proc=tmp_path)
    assert not pid_file.exists()


def test_a_running_daemon_keeps_its_pid_file(pid_file: Path, tmp_path: Path) -> None:
    program_now_named(tmp_path, "containerd")
    forget_dead_daemons({"containerd": pid_file}, proc=tmp_path)
    assert pid_file.exists()


def test_no_pid_file_is_nothing_to_forget(tmp_path: Path) -> None:
    forget_dead_daemons({"dockerd": tmp_path / "absent.pid"})
