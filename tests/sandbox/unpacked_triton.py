"""The real tritonserver with the stand-ins' backends, laid out under a temporary directory."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.triton.unpacked import unpacked_tritonserver

from .served import ROOT

WRAPPER = """#!/bin/sh
export LD_LIBRARY_PATH={libraries}
exec {binary} --backend-directory={backends} --exit-timeout-secs=2 "$@"
"""


def path_with_triton(place: Path) -> str:
    """A PATH on which `tritonserver` is the real one, with the backends that the image has."""
    unpacked = unpacked_tritonserver()
    triton = unpacked / "pytriton" / "tritonserver"
    backends, programs = place / "backends", place / "bin"
    backends.mkdir()
    programs.mkdir()
    (backends / "python").symlink_to(triton / "backends" / "python")
    for entry in sorted((ROOT / "sandbox" / "triton" / "backends").iterdir()):
        folder = backends / entry.name
        folder.mkdir()
        (folder / "model.py").symlink_to(entry / "model.py")
        importable(folder)
    libraries = unpacked / "nvidia_pytriton.libs"
    text = WRAPPER.format(
        libraries=libraries, binary=triton / "bin" / "tritonserver", backends=backends
    )
    (programs / "tritonserver").write_text(text)
    (programs / "tritonserver").chmod(0o755)
    return f"{programs}:/usr/bin:/bin"


def importable(folder: Path) -> None:
    """Put what models import beside them: the embedded Python looks there, not at PYTHONPATH."""
    unpacked = unpacked_tritonserver()
    ours = [ROOT / "sandbox", ROOT / "sandbox" / "vllm_standin", Path(yaml.__file__).parent]
    for path in (*ours, unpacked / "numpy", unpacked / "numpy.libs"):
        (folder / path.name).symlink_to(path)
