"""Failures to order: what an operator of the sandbox breaks, and NVIDIA's words for it.

The file holds one failure a line; without the file the host is well. `#` starts a comment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

NVML = ".".join(["580", "105", "08"][:2])


@dataclass(frozen=True)
class Broken:
    """How a program ends under a failure: nvidia-smi's text and status, and the hook's text."""

    text: str
    status: int
    hook: str | None


BROKEN = {
    "no-driver": Broken(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that the latest NVIDIA driver is installed and running.\n",
        9,
        "initialization error: nvml error: driver not loaded",
    ),
    "version-mismatch": Broken(
        f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {NVML}",
        18,
        "initialization error: nvml error: driver/library version mismatch",
    ),
    "no-library": Broken(
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that "
        "the NVIDIA Display Driver is properly installed and present in your system.\n"
        "Please also try adding directory that contains libnvidia-ml.so to your system PATH.",
        12,
        "initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object "
        "file: no such file or directory",
    ),
    "no-devices": Broken("No devices were found", 6, "detection error: nvml error: not found"),
}
"""Whole-host failures by name. `lost N` (one GPU off the bus) is told apart in `lost_gpus`."""


def failure_file() -> Path:
    return Path(os.environ.get("SIMGPU_FAILURE_FILE", "/etc/simgpu/failure"))


def _lines() -> list[str]:
    try:
        text = failure_file().read_text()
    except OSError:
        return []
    return [line.split("#")[0].strip() for line in text.splitlines()]


def broken() -> Broken | None:
    """The first whole-host failure ordered, if any."""
    return next((BROKEN[line] for line in _lines() if line in BROKEN), None)


def lost_gpus(*, quietly: bool = False) -> set[int]:
    """Indexes of GPUs that fell off the bus: all, or those that do not change the exit status.

    Reports contradict each other on nvidia-smi's status then, so both can be ordered:
    `lost N` (the line on standard output, status 15) and `lost-quietly N` (standard error, 0).
    """
    names = ("lost-quietly",) if quietly else ("lost", "lost-quietly")
    words = [line.split() for line in _lines()]
    return {int(w[1]) for w in words if len(w) == 2 and w[0] in names and w[1].isdigit()}
