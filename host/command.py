"""Runs a program of the host, in bounded time."""

from __future__ import annotations

import subprocess
from typing import Any

COMMAND_TIMEOUT_S = 15


def run(*command: str) -> tuple[int, str]:
    """Exit status and output; status 127 where the command is not there, 124 where it hung.

    What goes to standard error counts only where nothing came on standard output.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return 127, ""
    except subprocess.TimeoutExpired:
        return 124, f"no answer within {COMMAND_TIMEOUT_S} s"
    said = done.stdout.decode(errors="replace").strip()
    return done.returncode, said or done.stderr.decode(errors="replace").strip()


def whole(text: str) -> int:
    """The number at the start of a cell, 0 where there is none (`[N/A]`)."""
    first: Any = text.split()[0] if text.split() else ""
    return int(first) if first.isdigit() else 0
