"""`nvidia-container-runtime-hook`: what Docker runs before a container with a GPU request.

Like NVIDIA's it reads the OCI state on standard input and the bundle's config.json, and mounts the
chosen GPUs and the driver's files into the container, which then counts its GPUs from 0. Leaving
with an error keeps the container from starting.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from .devices import Gpu, present, root_directory
from .failures import broken, lost_gpus
from .selection import UnknownDeviceError, requested, select

DRIVER_FILES = ("/usr/lib/simgpu", "/usr/bin/nvidia-smi")


class HookError(Exception):
    """Refuses the start; the text is what nvidia-container-cli would print."""


def _choose(environment: list[str]) -> list[Gpu]:
    value = requested(environment)
    failure = broken()
    if value is not None and failure and failure.hook:
        raise HookError(failure.hook)
    try:
        return select(present(root_directory()), value or "none", lost_gpus())
    except UnknownDeviceError as error:
        raise HookError(str(error)) from error


def _bind_commands(rootfs: Path, gpus: list[Gpu]) -> list[str]:
    """Shell lines that run inside the container's mount namespace, before it changes its root."""
    lines = ["set -e"]
    for gpu in gpus:
        source = f"{root_directory()}/{gpu.uuid}"
        target = f"{rootfs}/run/simgpu/{gpu.uuid}"
        lines += [f"mkdir -p '{target}'", f"mount --bind '{source}' '{target}'"]
    for name in DRIVER_FILES:
        target = f"{rootfs}{name}"
        make = f"mkdir -p '{target}'" if Path(name).is_dir() else f"touch '{target}'"
        lines += [f"mkdir -p '{Path(target).parent}'", make, f"mount --bind '{name}' '{target}'"]
    return lines


def prestart(state: dict[str, Any]) -> None:
    """Put the GPUs into the container that `state` (OCI: pid, bundle) describes."""
    bundle = Path(state["bundle"])
    config = json.loads((bundle / "config.json").read_text())
    environment: list[str] = config["process"].get("env", [])
    if requested(environment) is None:
        return
    gpus = _choose(environment)
    rootfs = bundle / config["root"]["path"]
    script = "\n".join(_bind_commands(rootfs, gpus))
    command = ["nsenter", f"--target={state['pid']}", "--mount", "sh", "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise HookError(f"mount error: {done.stderr.strip()}")


def main() -> int:
    if "prestart" not in sys.argv[1:]:
        return 0
    try:
        prestart(json.load(sys.stdin))
    except HookError as error:
        print(f"Auto-detected mode as 'legacy'\nnvidia-container-cli: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
