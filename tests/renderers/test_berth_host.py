"""The file that is installed on hosts."""

from __future__ import annotations

import ast
import base64
import bz2
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from components.renderers import berth_host

OURS = {"host", "models"}


@pytest.mark.parametrize("path", berth_host.sources())
def test_every_file_in_it_is_for_python_3_9_and_the_standard_library(path: str) -> None:
    tree = ast.parse(berth_host.sources()[path], feature_version=(3, 9))
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            assert name.split(".")[0] in sys.stdlib_module_names | OURS, f"{path} imports {name}"
            if name.split(".")[0] in OURS:
                assert f"{name.replace('.', '/')}.py" in {*berth_host.sources(), *_packages()}


def _packages() -> set[str]:
    return {f"{name}.py" for name in OURS}


def test_the_rule_in_it_is_the_one_that_judges_a_plan() -> None:
    root = Path(__file__).parents[2]
    with zipfile.ZipFile(io.BytesIO(berth_host.build())) as archive:
        for name in ("models/overlap.py", "models/claiming.py", "models/start_gate.py"):
            assert archive.read(name).decode() == (root / name).read_text()


def test_another_machine_builds_the_same_bytes(tmp_path: Path) -> None:
    """Whatever the time, the zone and the hash seed."""
    script = (
        "import sys; from components.renderers import berth_host;"
        "sys.stdout.buffer.write(berth_host.build() + berth_host.packed().encode())"
    )
    here = Path(__file__).parents[2]
    for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo")):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "PYTHONPATH": str(here)},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            check=True,
        )
        assert done.stdout == berth_host.build() + berth_host.packed().encode()


def test_it_travels_as_text_and_is_unpacked_to_the_same_bytes() -> None:
    assert bz2.decompress(base64.b64decode(berth_host.packed())) == berth_host.build()
    done = subprocess.run(
        [sys.executable, "-I", "-c", berth_host.UNPACK],
        input=berth_host.packed().encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout == berth_host.build()
    assert all(len(line) <= 100 for line in berth_host.packed().splitlines())


def test_it_runs_as_a_program_of_its_own(tmp_path: Path) -> None:
    """The kernel reads its first line, and Python the rest."""
    file = tmp_path / "berth-host"
    file.write_bytes(berth_host.build())
    file.chmod(0o755)
    done = subprocess.run(
        [file, "--ledger", str(tmp_path / "none/ledger.db"), "claims"],
        cwd=tmp_path,
        env={"PYTHONPATH": "/nowhere"},
        text=True,
        capture_output=True,
        check=True,
    )
    assert done.stdout == '{"claims": [], "gpus": []}\n'
