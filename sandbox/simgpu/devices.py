"""The GPUs themselves: identity, size, and which of them this process may see."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

DRIVER_VERSION = "580.105.08"
CUDA_VERSION = "13.0"
L4_MEMORY_MIB = 23034
RESERVED_MIB = 469
"""What the driver keeps of an L4: total = reserved + used + free."""

_NAMESPACE = uuid.UUID("5f1c3a52-9b7e-5c44-8d0a-2f6be27a1c04")


def gpu_uuid(index: int) -> str:
    """The UUID of the simulated GPU with this index: the same on every sandbox, for ever."""
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'gpu-{index}')}"


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver describes it; memory in MiB."""

    index: int
    uuid: str
    name: str
    memory_mib: int
    reserved_mib: int
    bus_id: str

    @property
    def cuda_total_mib(self) -> int:
        """What CUDA reports for the device: an L4's 22.04 GiB, less than nvidia-smi's total."""
        return self.memory_mib - self.reserved_mib


def simulated_l4(index: int, memory_mib: int = L4_MEMORY_MIB) -> Gpu:
    return Gpu(
        index=index,
        uuid=gpu_uuid(index),
        name="NVIDIA L4",
        memory_mib=memory_mib,
        reserved_mib=RESERVED_MIB,
        bus_id=f"00000000:{(0x17 + 0x22 * index) % 256:02X}:00.0",
    )


def root_directory() -> Path:
    """Where the GPUs live; on a tmpfs, so that a power cut empties them."""
    return Path(os.environ.get("SIMGPU_ROOT", "/run/simgpu"))


def define(root: Path, gpus: list[Gpu]) -> None:
    """Make the GPUs exist under `root`; what is there already keeps its memory."""
    for gpu in gpus:
        directory = root / gpu.uuid
        allocations = directory / "allocations"
        allocations.mkdir(parents=True, exist_ok=True)
        # Any user may open the device, as with /dev/nvidia0.
        directory.chmod(0o777)
        allocations.chmod(0o777)
        (directory / "lock").touch()
        (directory / "lock").chmod(0o666)
        info = directory / "info.json"
        info.write_text(json.dumps(asdict(gpu)))
        info.chmod(0o644)


def present(root: Path) -> list[Gpu]:
    """The GPUs under `root` in the driver's order, with the host's indexes."""
    found = [Gpu(**json.loads(p.read_text())) for p in root.glob("GPU-*/info.json")]
    return sorted(found, key=lambda gpu: gpu.index)


def cuda_visible(root: Path, selection: str | None) -> list[Gpu]:
    """What CUDA shows under CUDA_VISIBLE_DEVICES: an invalid entry hides all after it.

    UUID prefixes are allowed, indexes count from 0 within what the container was given.
    """
    gpus = present(root)
    if selection is None:
        return gpus
    visible: list[Gpu] = []
    for entry in (part.strip() for part in selection.split(",")):
        if entry.isdigit() and int(entry) < len(gpus):
            visible.append(gpus[int(entry)])
            continue
        matches = [gpu for gpu in gpus if entry.startswith("GPU-") and gpu.uuid.startswith(entry)]
        if len(matches) != 1:
            break
        visible.append(matches[0])
    return visible
