"""The GPUs that this container was given, through the driver that the hook mounted."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

DRIVER = "/usr/lib/simgpu"

if TYPE_CHECKING:
    from sandbox.simgpu import devices, memory
elif Path(DRIVER).is_dir():
    sys.path.append(DRIVER)
    from simgpu import devices, memory
else:
    try:
        from sandbox.simgpu import devices, memory
    except ImportError:
        devices = memory = None
        """A container without a GPU request has no driver, and so no GPU."""

__all__ = ["devices", "memory", "visible_gpus"]


def visible_gpus() -> list[devices.Gpu]:
    """In CUDA's order, after CUDA_VISIBLE_DEVICES; empty in a container without GPUs."""
    if devices is None:
        return []
    selection = os.environ.get("CUDA_VISIBLE_DEVICES")
    return devices.cuda_visible(devices.root_directory(), selection)
