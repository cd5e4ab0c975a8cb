"""Memory on a simulated GPU: held by a process for as long as it holds a lock on a file.

A lock goes with its process, `kill -9` included, and knows nothing of PID or mount namespaces:
that is why it, and not a recorded PID, says whether memory is still in use.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .devices import Gpu


class OutOfMemoryError(Exception):
    """More was asked for than is free; all figures in MiB."""

    def __init__(self, gpu: Gpu, asked_mib: int, free_mib: int) -> None:
        super().__init__(f"{gpu.uuid}: {asked_mib} MiB asked, {free_mib} MiB free")
        self.gpu, self.asked_mib, self.free_mib = gpu, asked_mib, free_mib


@dataclass(frozen=True)
class Held:
    """An allocation that is alive: its size, and the lock's identity as /proc/locks names it."""

    mib: int
    device: int
    inode: int

    @property
    def lock_id(self) -> str:
        return f"{os.major(self.device):02x}:{os.minor(self.device):02x}:{self.inode}"


@contextmanager
def _exclusive(directory: Path) -> Iterator[None]:
    with (directory / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _held(directory: Path) -> list[Held]:
    held = []
    for path in (directory / "allocations").glob("*.mem"):
        try:
            with path.open() as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    status = os.fstat(file.fileno())
                    mib = int(file.read() or 0)
                    held.append(Held(mib=mib, device=status.st_dev, inode=status.st_ino))
                else:
                    with suppress(OSError):  # Sweeping is root's; who only looks leaves it.
                        path.unlink()
        except (FileNotFoundError, ValueError):
            continue
    return held


def held(root: Path, gpu: Gpu) -> list[Held]:
    """All living allocations on the GPU; those of dead processes are swept away here."""
    directory = root / gpu.uuid
    with _exclusive(directory):
        return _held(directory)


def used_mib(root: Path, gpu: Gpu) -> int:
    return sum(allocation.mib for allocation in held(root, gpu))


class Allocation:
    """Memory that this process holds on one GPU, from the first `resize` to `close`."""

    def __init__(self, root: Path, gpu: Gpu) -> None:
        self._gpu, self._directory = gpu, root / gpu.uuid
        self._fd: int | None = None
        self.mib = 0

    def resize(self, mib: int) -> None:
        """Take or give back memory so that `mib` are held; OutOfMemoryError changes nothing."""
        with _exclusive(self._directory):
            free = self._gpu.cuda_total_mib - sum(a.mib for a in _held(self._directory))
            if mib - self.mib > free:
                raise OutOfMemoryError(self._gpu, mib - self.mib, free)
            self._write(mib)

    def _write(self, mib: int) -> None:
        if self._fd is None:
            path = self._directory / "allocations" / f"{secrets.token_hex(8)}.mem"
            # Not inherited by children: only this process's end frees the memory.
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            # Every user may ask nvidia-smi, whatever the umask of who holds the memory.
            os.fchmod(self._fd, 0o666)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        os.pwrite(self._fd, b"%012d" % mib, 0)
        self.mib = mib

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd, self.mib = None, 0
