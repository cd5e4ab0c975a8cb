"""The toolchain as `tools/toolchain ensure` gives it, found or built."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
TOOLS = REPO / "tools"

# A build from cold takes about seven minutes on two cores, and slower machines exist.
ENSURE_LIMIT_S = 3000


@dataclass(frozen=True)
class Toolchain:
    programs: Path
    home: Path | None  # None: a Pulumi that was installed the usual way, with its own home

    def environment(self) -> dict[str, str]:
        env = {
            **os.environ,
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }
        if self.home:
            env["PULUMI_HOME"] = str(self.home)
            env["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
        return env

    def run(
        self, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.programs / "pulumi", *arguments],
            cwd=cwd,
            env={**self.environment(), **(env or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    ensured = subprocess.run(
        [sys.executable, TOOLS / "toolchain", "ensure"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=ENSURE_LIMIT_S,
        check=True,
    )
    told = dict(line.split("=", 1) for line in ensured.stdout.splitlines())
    home = told.get("PULUMI_HOME")
    return Toolchain(Path(told["PULUMI_BIN"]), Path(home) if home else None)
