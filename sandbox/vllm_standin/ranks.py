"""The processes of an engine, one a GPU, driven in step."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .driver import devices

_MIB = 2**20
_START = (
    "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, {path!r}); "
    "from {package}.worker import main; main()"
)


@dataclass
class Rank:
    """One worker process, and the bytes it holds."""

    device: int
    gpu: devices.Gpu
    process: subprocess.Popen[str]
    held: int = field(default=0)

    @property
    def total(self) -> int:
        return self.gpu.cuda_total_mib * _MIB

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, grow: int, seconds: float) -> None:
        """Order growth by `grow` bytes over `seconds`."""
        assert self.process.stdin  # noqa: S101
        order = {"grow": -(-grow // _MIB), "seconds": seconds}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What became of it; a worker that was killed meanwhile answers nothing."""
        assert self.process.stdout  # noqa: S101
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"Worker proc VllmWorker-{self.device} died unexpectedly")
        found: dict[str, Any] = json.loads(line)
        self.held = int(found["held"])
        return found

    def close(self) -> None:
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()


def start(device: int, gpu: devices.Gpu, title: str) -> Rank:
    """A worker that calls itself `title`, as vLLM's processes name themselves."""
    package = __package__ or "vllm_standin"
    path = str(Path(__file__).resolve().parents[package.count(".") + 1])
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    process = subprocess.Popen(
        [title, "-c", _START.format(path=path, package=package), gpu.uuid],
        executable=python,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Rank(device, gpu, process)
