"""A build is in the cache whole or not at all, whoever else is at it and whatever is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.toolchain.conftest import REPO
from tools.pinned import cache

MAKER = """
    import sys, time
    from pathlib import Path
    from tools.pinned import cache

    def make(draft: Path) -> None:
        (draft / "program").write_text("half")
        with open(sys.argv[1], "a") as log:
            log.write("made\\n")
        time.sleep(float(sys.argv[2]))
        (draft / "program").write_text("whole")

    print(cache.kept("thing", "key", make))
"""


def maker(log: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(MAKER), str(log), str(seconds)]
    return subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BERTH_CACHE", str(tmp_path))
    return tmp_path / "toolchain" / "thing-key"


def test_a_killed_build_leaves_nothing_that_is_taken_as_whole(place: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    killed = maker(log, 60)
    deadline = time.monotonic() + 30
    while not log.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=30)
    assert not place.exists()

    maker(log, 0).communicate(timeout=30)
    assert (place / "program").read_text() == "whole"
    assert {entry.name for entry in place.parent.iterdir()} == {"thing-key", "thing.lock"}


def test_two_runs_at_once_build_once(place: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    both = [maker(log, 1), maker(log, 1)]
    told = [run.communicate(timeout=60)[0].strip() for run in both]
    assert told == [str(place), str(place)]
    assert log.read_text() == "made\n"


def test_a_failed_build_leaves_nothing(place: Path) -> None:
    def fail(draft: Path) -> None:
        (draft / "program").write_text("half")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        cache.kept("thing", "key", fail)
    assert not place.exists()
    assert [entry.name for entry in place.parent.iterdir()] == ["thing.lock"]
