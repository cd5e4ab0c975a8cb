"""The guard, run by a real shell on real entries."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from components.renderers.host_guard import nobody_else
from tests.declarations import changed, plan_of


def guard(data: Path) -> subprocess.CompletedProcess[str]:
    host = plan_of(changed("hosts/alpha/data_dir", str(data))).hosts["alpha"]
    script = nobody_else(host, "dev")
    return subprocess.run(["sh", "-euc", script], text=True, capture_output=True, check=False)


def entry(data: Path, name: str, owner: str) -> None:
    folder = data / "models" / name
    folder.mkdir(parents=True)
    (folder / ".berth-owner.json").write_text(json.dumps({"owner": owner, "revision": "r"}))


def test_an_empty_or_missing_repository_is_let_go(tmp_path: Path) -> None:
    assert guard(tmp_path).returncode == 0


def test_own_entries_are_no_reason_to_stay(tmp_path: Path) -> None:
    entry(tmp_path, "reference.small", "berth/dev/reference")
    assert guard(tmp_path).returncode == 0


def test_others_entries_are_named_with_their_owners(tmp_path: Path) -> None:
    entry(tmp_path, "reference.small", "berth/dev/reference")
    entry(tmp_path, "desk.small", "berth/desk/desk")
    entry(tmp_path, "dev2.small", "berth/dev2/dev2")
    (tmp_path / "models/by-hand").mkdir()
    done = guard(tmp_path)
    assert done.returncode == 1
    assert "desk.small (berth/desk/desk)" in done.stderr
    assert "dev2.small (berth/dev2/dev2)" in done.stderr
    assert "by-hand (not made by Berth)" in done.stderr
    assert "reference.small" not in done.stderr
    assert "Fix: " in done.stderr
