"""`berth-host` as it is installed: one file, run as a process, with a ledger of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from components.renderers import berth_host

GPUS = tuple(f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in range(4))
L4_MIB = 23034 - 468
"""What CUDA gives of a simulated L4."""
TIMEOUT_S = 60
Program = Callable[[str, str], None]


@dataclass(frozen=True)
class BerthHost:
    """The program on a host with four L4s and nothing else."""

    file: Path
    ledger: Path
    programs: Path

    @property
    def command(self) -> list[str]:
        """The command line up to the command's name."""
        return [sys.executable, "-IS", str(self.file), "--ledger", str(self.ledger)]

    @property
    def environment(self) -> dict[str, str]:
        """With the host's own programs before this machine's."""
        return {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"}

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command; never may it end in a traceback."""
        done = subprocess.run(
            [*self.command, *words],
            input=stdin,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def ask(self, command: str, asked: Any = None) -> dict[str, Any]:
        """Run a command of JSON both ways."""
        done = self.run(command, stdin=json.dumps(asked))
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def claim(self, holder: str, *claims: dict[str, Any]) -> dict[str, Any]:
        """Claim for a holder."""
        return self.ask("claim", {"holder": holder, "claims": list(claims), "host": "alpha"})

    def names(self) -> list[str]:
        """The names of all claims."""
        return [claim["name"] for claim in self.ask("claims")["claims"]]


def record(holder: str, *gpus: int, mib: int = 20000, **more: Any) -> dict[str, Any]:
    """A claim of a holder on GPUs, by index."""
    stack, _, demo = holder.rpartition("/")
    values = {
        "name": f"{stack}/{demo}.small/triton@{gpus[0]}",
        "owner": holder,
        "stack": stack,
        "demo": demo,
        "roles": [f"guard-{demo}-{gpus[0]}"],
        "model": "small",
        "entry": f"{demo}.small",
        "instance": f"triton@{gpus[0]}",
        "http_port": 8000 + gpus[0],
        "control_key_file": f"/etc/berth/instances/{gpus[0]}.key",
        "gpus": [{"uuid": GPUS[index], "mib": mib} for index in gpus],
    }
    return values | more


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    file = tmp_path_factory.mktemp("bin") / "berth-host"
    file.write_bytes(berth_host.build())
    file.chmod(0o755)
    return file


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an nvidia-smi that lists four L4s and no process."""
    folder = tmp_path_factory.mktemp("programs")
    rows = "".join(
        f"{uuid}, {index}, NVIDIA L4, 580.105.08, 23034, 468, 0\\n"
        for index, uuid in enumerate(GPUS)
    )
    script = f"#!/bin/sh\ncase $1 in --query-gpu=*) printf '{rows}' ;; esac\n"
    (folder / "nvidia-smi").write_text(script)
    (folder / "nvidia-smi").chmod(0o755)
    return folder


@pytest.fixture
def host(built: Path, programs: Path, tmp_path: Path) -> BerthHost:
    return BerthHost(built, tmp_path / "berth/ledger.db", programs)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a program on an otherwise empty PATH."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def write(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return write
