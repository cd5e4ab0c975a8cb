"""A lock that a killed run left behind is told from one that a living run holds."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.refusal import Refusal
from ops.lock import holders, wait_for_others


def lock(backend: Path, pid: int, host: str | None = None) -> Path:
    folder = backend / ".pulumi/locks/organization/berth/dev"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{pid}.json"
    text = {"pid": pid, "username": "me", "hostname": host or socket.gethostname()}
    file.write_text(json.dumps(text))
    return file


@pytest.fixture
def living(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is called pulumi."""
    program = tmp_path / "pulumi"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    process = subprocess.Popen([program, "60"])
    yield process
    process.kill()
    process.wait()


def wait(backend: Path, wait_s: float = 5) -> tuple[bool, list[str]]:
    said: list[str] = []
    left = wait_for_others(f"file://{backend}", "dev", said.append, wait_s=wait_s, poll_s=0.01)
    return left, said


def test_no_lock_means_nothing_to_release(tmp_path: Path) -> None:
    assert wait(tmp_path) == (False, [])


def test_the_lock_of_a_dead_process_is_to_be_released(tmp_path: Path) -> None:
    lock(tmp_path, 2**22 + 1)
    assert wait(tmp_path) == (True, [])


def test_a_process_that_only_took_over_the_number_does_not_hold_it(tmp_path: Path) -> None:
    lock(tmp_path, os.getpid())
    assert wait(tmp_path) == (True, [])


def test_a_living_run_is_waited_for_and_named(
    tmp_path: Path, living: subprocess.Popen[bytes]
) -> None:
    file = lock(tmp_path, living.pid)
    told: list[str] = []

    def say(what: str) -> None:
        told.append(what)
        file.unlink()

    assert wait_for_others(f"file://{tmp_path}", "dev", say, poll_s=0.01) is False
    assert str(living.pid) in told[0]


def test_a_living_run_is_not_waited_for_without_end(
    tmp_path: Path, living: subprocess.Popen[bytes]
) -> None:
    lock(tmp_path, living.pid)
    with pytest.raises(Refusal, match="is locked by me@"):
        wait(tmp_path, wait_s=0.05)


def test_a_run_on_another_machine_is_never_overruled(tmp_path: Path) -> None:
    lock(tmp_path, 1, host="elsewhere")
    with pytest.raises(Refusal, match="elsewhere"):
        wait(tmp_path)


def test_half_written_locks_and_other_backends_hold_nothing(tmp_path: Path) -> None:
    lock(tmp_path, 1).write_text("{")
    assert holders(f"file://{tmp_path}", "dev") == []
    assert holders("s3://bucket", "dev") == []
