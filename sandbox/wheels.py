"""The two wheels of requirements.lock, fetched by pip and checked against their hashes."""

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


def _pip() -> list[str]:
    """This interpreter's pip, else the machine's: a virtual environment may have been made bare."""
    if run([sys.executable, "-m", "pip", "--version"], check=False).returncode == 0:
        return [sys.executable, "-m", "pip"]
    return [shutil.which("pip3") or shutil.which("pip") or "pip"]


def wheels() -> Path:
    """A zip that holds all wheels of the lock file."""

    def build(target: Path) -> None:
        with step("fetching Triton and numpy"), tempfile.TemporaryDirectory() as folder:
            command = [*_pip(), "download", "--quiet", "--no-deps", "--require-hashes"]
            command += ["--only-binary=:all:", "--python-version=3.11", "--platform=any"]
            command += [f"--platform=manylinux_2_{minor}_x86_64" for minor in (17, 35)]
            command += ["--platform=manylinux2014_x86_64"]
            run([*command, f"--dest={folder}", f"--requirement={LOCK}"])
            with zipfile.ZipFile(target, "w") as archive:
                for wheel in sorted(Path(folder).glob("*.whl")):
                    archive.write(wheel, wheel.name)

    return cached("wheels.zip", key([LOCK]), build)
