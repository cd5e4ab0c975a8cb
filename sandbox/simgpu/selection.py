"""Which GPUs a container asked for, by NVIDIA_VISIBLE_DEVICES, as libnvidia-container reads it."""

from __future__ import annotations

from .devices import Gpu


class UnknownDeviceError(Exception):
    """One bad name fails the whole start."""

    def __init__(self, name: str) -> None:
        super().__init__(f"device error: {name}: unknown device")


def requested(environment: list[str]) -> str | None:
    """The variable's value; among duplicates the last wins; None where no GPU is asked for."""
    values = [e.partition("=")[2] for e in environment if e.startswith("NVIDIA_VISIBLE_DEVICES=")]
    return values[-1] if values and values[-1] not in ("", "void") else None


def select(gpus: list[Gpu], value: str, lost: set[int]) -> list[Gpu]:
    """Whole UUIDs (any case, no prefixes), indexes, PCI ids or `all`, in the host's order."""
    usable = [gpu for gpu in gpus if gpu.index not in lost]
    if value == "all":
        return usable
    if value == "none":
        return []
    names: dict[str, Gpu] = {}
    for gpu in usable:
        for name in (str(gpu.index), gpu.uuid, gpu.bus_id, gpu.bus_id[4:]):
            names[name.lower()] = gpu
    chosen = []
    for name in value.split(","):
        if name.lower() not in names:
            raise UnknownDeviceError(name)
        chosen.append(names[name.lower()])
    return sorted(set(chosen), key=lambda gpu: gpu.index)
