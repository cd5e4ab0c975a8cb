"""Runs one bounded command, tells how long it has been running, and leaves no child behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .failure import ToolchainError
from .progress import say, spoken

TELL_EVERY_S = 30.0
LINES_SHOWN = 15


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    limit_s: float,
    what: str,
    fix: str,
) -> str:
    """The command's stdout. A failure shows the end of what it said, and what to do."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as said:
        # A session of its own, so that a compiler's children end with it.
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdout=out,
            stderr=said,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        try:
            code = _await(child, limit_s, what)
        finally:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        said.seek(0)
        out.seek(0)
        if code == 0:
            return out.read()
        tail = "\n".join((said.read() or out.read()).splitlines()[-LINES_SHOWN:])
        ending = f"ran past its {spoken(limit_s)}" if code is None else f"failed (exit {code})"
        raise ToolchainError(f"{what} {ending}.\n{tail}\n{fix}")


def _end_with_parent() -> None:
    """A killed run must not leave a compiler that writes into what the next one has cleared."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _await(child: subprocess.Popen[bytes], limit_s: float, what: str) -> int | None:
    started = time.monotonic()
    while True:
        elapsed = time.monotonic() - started
        if elapsed >= limit_s:
            return None
        try:
            return child.wait(timeout=min(TELL_EVERY_S, limit_s - elapsed))
        except subprocess.TimeoutExpired:
            say(f"      {what}: {spoken(time.monotonic() - started)} so far")
