"""The guard, run by a real shell on a host with and without berth-host."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from components.renderers import berth_host
from components.renderers.host_guard import host_stack, nobody_else
from tests.declarations import changed, plan_of


def guard(root: Path) -> subprocess.CompletedProcess[str]:
    """Run it with everything of the host below `root`."""
    host = plan_of(changed("hosts/alpha/data_dir", str(root / "data"))).hosts["alpha"]
    script = nobody_else(host, host_stack("dev"))
    script = script.replace(
        f"exec {berth_host.PATH}", f"exec {berth_host.PATH} --ledger {berth_host.LEDGER}"
    )
    script = script.replace("/usr/local/bin", str(root)).replace("/var/lib/berth", str(root))
    return subprocess.run(["sh", "-euc", script], text=True, capture_output=True, check=False)


def entry(root: Path, name: str, owner: str) -> None:
    folder = root / "data/models" / name
    folder.mkdir(parents=True)
    (folder / ".berth-owner.json").write_text(json.dumps({"owner": owner, "revision": "r"}))


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    (tmp_path / "berth-host").write_bytes(berth_host.build())
    (tmp_path / "berth-host").chmod(0o755)
    return tmp_path


def test_a_host_that_nobody_else_stands_on_is_let_go(installed: Path) -> None:
    assert guard(installed).returncode == 0
    entry(installed, "reference.small", "berth/dev/reference")
    assert guard(installed).returncode == 0


def test_others_are_named_with_what_to_do(installed: Path) -> None:
    entry(installed, "desk.small", "berth/desk/desk")
    done = guard(installed)
    assert done.returncode == 1
    assert "desk.small (berth/desk/desk)" in done.stderr
    assert "Fix: " in done.stderr


def test_a_host_that_was_wiped_is_let_go_without_berth_host(tmp_path: Path) -> None:
    assert guard(tmp_path).returncode == 0


@pytest.mark.parametrize("left", ["ledger.db", "data/models/desk.small"])
def test_without_berth_host_a_host_with_anything_on_it_stays(tmp_path: Path, left: str) -> None:
    (tmp_path / left).mkdir(parents=True)
    done = guard(tmp_path)
    assert done.returncode == 1
    assert "nobody can say who else stands" in done.stderr
