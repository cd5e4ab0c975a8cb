"""What is built once: files under the cache directory, named by what they are built from."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .progress import say


def cache_root() -> Path:
    """`$BERTH_CACHE`, else `berth` in the user's cache directory."""
    named = os.environ.get("BERTH_CACHE")
    user = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(named) if named else Path(user) / "berth"


def key(parts: Iterable[str | bytes | Path]) -> str:
    """A short hash of texts, and of files: their names, modes and contents, folders recursively."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            files = sorted(p for p in part.rglob("*") if p.is_file()) if part.is_dir() else [part]
            for file in files:
                if "__pycache__" not in file.parts:
                    executable = bool(file.stat().st_mode & 0o100)
                    digest.update(f"{file.relative_to(part.parent)}:{executable}:".encode())
                    digest.update(hashlib.sha256(file.read_bytes()).digest())
        else:
            digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def cached(name: str, built_from: str, build: Callable[[Path], None]) -> Path:
    """The file `name` for this key, built under a lock so that two runs share one build.

    `build` writes to a temporary path beside it; the rename makes the file appear whole.
    """
    directory = cache_root() / "sandbox" / built_from
    target = directory / name
    if target.exists():
        return target
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another run is building {name}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            unfinished = directory / f"{name}.unfinished"
            unfinished.unlink(missing_ok=True)
            build(unfinished)
            unfinished.rename(target)
    return target


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Two runs that change the sandbox of this name take turns."""
    directory = cache_root() / "sandbox"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
