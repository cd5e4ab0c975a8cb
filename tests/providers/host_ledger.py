"""The real `berth-host` behind a real sshd, with a ledger of the test's own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.renderers import berth_host
from models.claim_record import ClaimedGpu, ClaimRecord

GPUS = [f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in range(4)]
CUDA_MIB = 22565
HOLDER = "berth/dev/shop"
NVIDIA_SMI = "#!/bin/sh\n" + "".join(
    f"echo '{uuid}, {index}, NVIDIA L4, 550.54, 23034, 469, 0'\n" for index, uuid in enumerate(GPUS)
)


@dataclass
class HostLedger:
    """A ledger in a directory, and the program that keeps it, on a machine with four L4s."""

    place: Path

    def __post_init__(self) -> None:
        smi = self.place / "bin" / "nvidia-smi"
        smi.parent.mkdir(parents=True)
        smi.write_text(NVIDIA_SMI)
        smi.chmod(0o755)
        (self.place / "zipapp").write_bytes(berth_host.build())
        self.database = self.place / "ledger.db"
        self.program = self.place / "berth-host"
        call = f"{sys.executable} -I {self.place}/zipapp --ledger {self.database}"
        path = f"{smi.parent}:$PATH"
        self.program.write_text(f'#!/bin/sh\nPATH="{path}" exec {call} "$@"\n')
        self.program.chmod(0o755)

    def call(self, *words: str) -> str:
        """Run it as a person on the host."""
        done = subprocess.run(
            [self.program, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout

    def records(self) -> dict[str, dict[str, Any]]:
        """Claim's name → what the ledger holds."""
        claims = json.loads(self.call("claims"))["claims"]
        return {record["name"]: record for record in claims}


def record(
    model: str,
    *gpus: int,
    instance: str = "",
    holder: str = HOLDER,
    mib: int = 20309,
    shared: bool = False,
    **more: Any,
) -> ClaimRecord:
    """A claim on GPUs by index, on the instance named after the first of them."""
    project, stack, demo = holder.split("/")
    on = instance or f"triton@{gpus[0]}"
    return ClaimRecord(
        name=f"{project}/{stack}/{demo}.{model}/{on}",
        owner=holder,
        stack=f"{project}/{stack}",
        demo=demo,
        roles=(f"{demo}-{model}",),
        model=model,
        entry=f"{demo}.{model}",
        instance=on,
        http_port=more.pop("http_port", 1),
        control_key_file=more.pop("control_key_file", f"/etc/berth/instances/{gpus[0]}.key"),
        gpus=tuple(ClaimedGpu(GPUS[index], mib) for index in gpus),
        shared=shared,
    )
