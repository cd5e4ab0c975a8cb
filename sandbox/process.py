"""Running programs: quiet when they succeed, their own words when they do not."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence


class SandboxError(Exception):
    """Something the sandbox cannot do; the message says what and what to do about it."""


def run(
    command: Sequence[str], *, stdin: bytes | None = None, timeout: float = 600, check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run to the end and return its output; a failure raises SandboxError with what it printed."""
    try:
        done = subprocess.run(
            list(command), input=stdin, capture_output=True, timeout=timeout, check=False
        )
    except FileNotFoundError as error:
        raise SandboxError(f"{command[0]}: no such program") from error
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"{' '.join(command[:4])} … did not end in {timeout:.0f} s") from error
    if check and done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise SandboxError(f"{' '.join(command[:4])} … ended with {done.returncode}: {words}")
    return done


def output(command: Sequence[str], *, timeout: float = 600) -> str:
    return run(command, timeout=timeout).stdout.decode().strip()
