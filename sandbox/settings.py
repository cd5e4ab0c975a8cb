"""What one sandbox is: its name, port, directory and GPUs."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .process import SandboxError
from .simgpu.devices import L4_MEMORY_MIB, simulated_l4

USER = "berth"
ADDRESS = "127.0.0.1"
GATEWAY = 8443
"""The gateway's port on the host."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


@dataclass(frozen=True)
class Settings:
    """Memory in MiB, as nvidia-smi's memory.total says it."""

    name: str
    ssh_port: int
    gpus: int
    memory_mib: int = L4_MEMORY_MIB
    gateway_port: int = 0
    """On this machine's loopback, where the host's own 8443 can be reached; 0: it cannot."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise SandboxError(f"name {self.name!r}: lower-case letters, digits and - only")
        if not 1 <= self.ssh_port <= 65535 or not 1 <= self.gpus <= 7:
            raise SandboxError("needs an SSH port from 1 to 65535 and 1 to 7 GPUs")
        if not 0 <= self.gateway_port <= 65535:
            raise SandboxError("the gateway's port is one from 1 to 65535, or 0 for none")
        if self.memory_mib < 2048:
            raise SandboxError("a GPU has at least 2048 MiB")

    def to_label(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_label(label: str) -> Settings:
        return Settings(**json.loads(label))

    def differences(self, other: Settings) -> list[str]:
        mine, its = asdict(self), asdict(other)
        return [f"{k} {its[k]} → {mine[k]}" for k in mine if mine[k] != its[k]]


def description(settings: Settings, images: dict[str, str]) -> dict[str, Any]:
    """What sandbox.json tells whoever uses the host."""
    gpus = [simulated_l4(index, settings.memory_mib) for index in range(settings.gpus)]
    return {
        "name": settings.name,
        "ssh": {"address": ADDRESS, "port": settings.ssh_port, "user": USER},
        "gateway": {"address": ADDRESS, "port": settings.gateway_port},
        "gpus": [{"index": g.index, "uuid": g.uuid, "memory_mib": g.memory_mib} for g in gpus],
        "image": images["triton"],
        "images": images,
    }


def write_description(directory: Path, settings: Settings, images: dict[str, str]) -> None:
    text = json.dumps(description(settings, images), indent=2) + "\n"
    target = directory / "sandbox.json"
    if not target.exists() or target.read_text() != text:
        target.write_text(text)
