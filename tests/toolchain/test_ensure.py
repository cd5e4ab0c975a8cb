"""Which Pulumi is taken: the one on PATH if it will do, and never a stranger's by mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolchain.conftest import TOOLS, Toolchain
from tests.toolchain.test_pins import pins

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(3600)]


def installed(folder: Path, release: str, *, language_host: bool = True) -> Path:
    names = ("pulumi", "pulumi-language-python") if language_host else ("pulumi",)
    for name in names:
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {release}\n", encoding="utf-8")
        program.chmod(0o755)
    return folder


def ensured(path: Path) -> dict[str, str]:
    env = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    told = subprocess.run(
        [sys.executable, TOOLS / "toolchain", "ensure"],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        timeout=3000,
        check=True,
    )
    return dict(line.split("=", 1) for line in told.stdout.splitlines())


def test_a_pulumi_on_path_that_is_new_enough_is_used_as_it_is(tmp_path: Path) -> None:
    path = installed(tmp_path, f"v{pins()['PULUMI_MIN']}")
    assert ensured(path) == {"PULUMI_BIN": str(tmp_path)}


@pytest.mark.usefixtures("toolchain")
@pytest.mark.parametrize("release", ["v3.1.0", "v2.25.2", "nonsense"])
def test_a_pulumi_on_path_that_is_too_old_is_passed_over(tmp_path: Path, release: str) -> None:
    assert ensured(installed(tmp_path, release))["PULUMI_BIN"] != str(tmp_path)


def test_a_pulumi_without_its_python_language_host_is_passed_over(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    path = installed(tmp_path, f"v{pins()['PULUMI']}", language_host=False)
    if not toolchain.home:
        pytest.skip("the language host of the installed Pulumi is on PATH here")
    assert ensured(path)["PULUMI_BIN"] != str(tmp_path)


def test_our_own_pulumi_on_path_still_gets_its_home(toolchain: Toolchain) -> None:
    if not toolchain.home:
        pytest.skip("a Pulumi that was installed the usual way is used here")
    told = ensured(toolchain.programs)
    assert told == {"PULUMI_BIN": str(toolchain.programs), "PULUMI_HOME": str(toolchain.home)}
