"""The wheels of a lock file, fetched by pip and checked against their hashes."""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from .cache import cached, key
from .process import run
from .progress import step

LOCK = Path(__file__).parent / "requirements.lock"
"""The real Triton and its numpy."""
SERVING_LOCK = Path(__file__).parent / "serving.lock"
"""What the stand-ins of HTTP servers are made with."""


def _pip() -> list[str]:
    """This interpreter's pip, else the machine's: a virtual environment may have been made bare."""
    if run([sys.executable, "-m", "pip", "--version"], check=False).returncode == 0:
        return [sys.executable, "-m", "pip"]
    return [shutil.which("pip3") or shutil.which("pip") or "pip"]


def wheels(lock: Path = LOCK) -> Path:
    """A zip that holds all wheels of the lock file."""

    def build(target: Path) -> None:
        with step(f"fetching the wheels of {lock.name}"), tempfile.TemporaryDirectory() as folder:
            command = [*_pip(), "download", "--quiet", "--no-deps", "--require-hashes"]
            command += ["--only-binary=:all:", "--python-version=3.11", "--platform=any"]
            command += [f"--platform=manylinux_2_{minor}_x86_64" for minor in (17, 35)]
            command += ["--platform=manylinux2014_x86_64"]
            run([*command, f"--dest={folder}", f"--requirement={lock}"])
            with zipfile.ZipFile(target, "w") as archive:
                for wheel in sorted(Path(folder).glob("*.whl")):
                    archive.write(wheel, wheel.name)

    return cached("wheels.zip", key([lock]), build)
