"""Simulated GPUs under a temporary directory, for tests that need no host."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from sandbox.simgpu import smi
from sandbox.simgpu.devices import define, simulated_l4


def gpus_under(root: Path, monkeypatch: pytest.MonkeyPatch, count: int = 4) -> None:
    define(root, [simulated_l4(index) for index in range(count)])
    monkeypatch.setenv("SIMGPU_ROOT", str(root))
    monkeypatch.setenv("SIMGPU_FAILURE_FILE", str(root / "failure"))


def nvidia_smi(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit status and standard output."""
    status = 0
    with contextlib.suppress(SystemExit):
        status = smi.main(arguments)
    return status, capsys.readouterr().out
