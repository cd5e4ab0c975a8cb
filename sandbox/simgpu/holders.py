"""Who holds memory on a GPU: from locks to processes, in the reader's own PID namespace.

On the host that gives the host's PIDs, container processes included, as nvidia-smi does there.
In a container /proc/locks shows the container's own processes and PID 0 for all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .devices import Gpu
from .memory import held


@dataclass(frozen=True)
class Holder:
    gpu: Gpu
    pid: int
    process_name: str
    mib: int


def _lock_owners(proc: Path) -> dict[str, int]:
    owners = {}
    for line in (proc / "locks").read_text().splitlines():
        fields = line.split()
        if "->" not in fields and len(fields) >= 6 and fields[1] == "FLOCK":
            owners[fields[5]] = int(fields[4])
    return owners


def process_name(proc: Path, pid: int) -> str:
    """The full path, or whatever the process calls itself: it may hold commas and spaces."""
    try:
        arguments = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "[Not Found]"
    return arguments[0].decode(errors="replace") or "[Not Found]"


def holders(root: Path, gpu: Gpu, proc: Path = Path("/proc")) -> list[Holder]:
    """Processes with memory on the GPU, by PID; those of other namespaces are left out."""
    owners = _lock_owners(proc)
    found = []
    for allocation in held(root, gpu):
        pid = owners.get(allocation.lock_id, 0)
        if pid:
            found.append(Holder(gpu, pid, process_name(proc, pid), allocation.mib))
    return sorted(found, key=lambda holder: holder.pid)
