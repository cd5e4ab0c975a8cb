"""The Command plugin's own tests, which talk to a real SSH server."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.toolchain.conftest import TOOLS

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(1800)]


def test_the_command_plugin_behaves_as_documented_and_keeps_secrets() -> None:
    compiler = subprocess.run(
        [sys.executable, TOOLS / "toolchain", "go"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=900,
        check=True,
    ).stdout.strip()
    env = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    tested = subprocess.run(
        [compiler, "test", "-count=1", "./..."],
        cwd=TOOLS / "plugin-command",
        env=env,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
