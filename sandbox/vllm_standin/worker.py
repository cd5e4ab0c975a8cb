"""One rank's process: it holds the memory of one GPU until its standard input closes.

It is a process of its own, as vLLM's is, so that it can be killed by itself and so that it may
outlive a server that dies, for as long as it drains.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from .driver import devices, memory

STEPS = 20
DRAIN_SECONDS = 0.7
_MIB = 2**20


def _answer(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def _grow(allocation: memory.Allocation, target: int, seconds: float) -> None:
    start = allocation.mib
    for step in range(1, STEPS + 1):
        time.sleep(seconds / STEPS)
        allocation.resize(start + (target - start) * step // STEPS)


def main() -> None:
    """Lines in: {"grow": MiB more, "seconds": s}; lines out: {"ok": …} or {"oom": …}."""
    uuid = sys.argv[1]
    root = devices.root_directory()
    gpu = next(gpu for gpu in devices.present(root) if gpu.uuid == uuid)
    allocation = memory.Allocation(root, gpu)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            _grow(allocation, allocation.mib + order["grow"], order["seconds"])
        except memory.OutOfMemoryError as error:
            _answer(
                oom=True,
                asked=error.asked_mib * _MIB,
                free=error.free_mib * _MIB,
                held=allocation.mib * _MIB,
            )
        else:
            free = gpu.cuda_total_mib - memory.used_mib(root, gpu)
            _answer(oom=False, free=free * _MIB, held=allocation.mib * _MIB)
    _grow(allocation, 0, DRAIN_SECONDS)
