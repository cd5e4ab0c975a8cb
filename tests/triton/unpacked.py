"""The real tritonserver, unpacked once from its wheel into the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LOCK = Path(__file__).with_name("requirements.lock")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
NEEDED = (
    "nvidia_pytriton.libs/",
    "pytriton/tritonserver/bin/",
    "pytriton/tritonserver/backends/",
    f"pytriton/tritonserver/python_backend_stubs/{PYTHON}/",
    "numpy",
)


def unpacked_tritonserver() -> Path:
    """The directory of what the wheels hold, fetched and unpacked if it is not there yet.

    Raises:
        subprocess.CalledProcessError: pip cannot get the wheels, or their hashes differ.
    """
    key = hashlib.sha256(LOCK.read_bytes() + PYTHON.encode()).hexdigest()[:16]
    place = _cache() / "tritonserver" / key
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        wheels, fresh = Path(scratch) / "wheels", Path(scratch) / "unpacked"
        _download(wheels)
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                names = [name for name in archive.namelist() if name.startswith(NEEDED)]
                archive.extractall(fresh, names)
        triton = fresh / "pytriton" / "tritonserver"
        stub = triton / "python_backend_stubs" / PYTHON / "triton_python_backend_stub"
        shutil.copy(stub, triton / "backends" / "python")
        for program in (
            triton / "bin" / "tritonserver",
            triton / "backends" / "python" / stub.name,
        ):
            program.chmod(0o755)
        try:
            fresh.rename(place)
        except OSError:
            if not place.is_dir():  # else another run was faster
                raise
    return place


def _cache() -> Path:
    if given := os.environ.get("BERTH_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "berth"


def _download(into: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    pins = ["--require-hashes", "--only-binary", ":all:", "--requirement", str(LOCK)]
    subprocess.run([*pip, *pins, "--dest", str(into)], check=True)
