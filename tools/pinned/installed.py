"""A Pulumi that is installed the usual way is used as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .assembly import MARKER
from .progress import say
from .versions import parsed, pins

LANGUAGE_HOST = "pulumi-language-python"


def installed() -> Path | None:
    """The directory of a Pulumi on PATH that is new enough and runs Python; None otherwise."""
    found = shutil.which("pulumi")
    if not found:
        return None
    program = Path(found)
    # One of ours, put on PATH by an earlier run: its home must be told again.
    if (program.resolve().parent / MARKER).exists():
        return None
    release = _release(program)
    if parsed(release) < parsed(pins()["PULUMI_MIN"]):
        named = release or "of unknown version"
        say(f"The Pulumi on PATH ({named}) is older than {pins()['PULUMI_MIN']}: building one.")
        return None
    beside = {program.parent, program.resolve().parent}
    if any((folder / LANGUAGE_HOST).exists() for folder in beside) or shutil.which(LANGUAGE_HOST):
        return program.parent
    say("The Pulumi on PATH has no Python language host: building both.")
    return None


def _release(program: Path) -> str:
    env = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        asked = subprocess.run(
            [program, "version"], env=env, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip()
