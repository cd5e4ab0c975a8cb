"""A directory of finished builds: each appears whole, under its key, or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .failure import ToolchainError
from .progress import say, spoken

# Longer than the longest build on a slow machine: another run may be at it.
LOCK_LIMIT_S = 3600.0


def root() -> Path:
    """Where the builds are kept."""
    chosen = os.environ.get("BERTH_CACHE")
    if chosen:
        return Path(chosen).absolute() / "toolchain"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "berth" / "toolchain"


def kept(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The finished directory `<name>-<key>`, made by `make` in a temporary one if need be."""
    place = root() / f"{name}-{key}"
    if place.is_dir():
        return place
    try:
        root().mkdir(parents=True, exist_ok=True)
        with _locked(name):
            if not place.is_dir():
                _made(name, place, make)
    except PermissionError as error:
        raise ToolchainError(
            f"The cache {root()} cannot be written: {error.strerror}. Nothing was built.\n"
            "Set BERTH_CACHE to a directory of yours."
        ) from error
    return place


def _made(name: str, place: Path, make: Callable[[Path], None]) -> None:
    # Under the lock: whatever is half-made was left by a run that was killed.
    for left in root().glob(f".{name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=root()))
    try:
        make(draft)
        draft.chmod(0o755)
        for file in draft.iterdir():
            _flushed(file)
        # Only now does it exist for anyone else; the files came first, a power cut included.
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _flushed(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    # The kernel drops the lock with the process, so a killed run locks nobody out.
    with (root() / f"{name}.lock").open("w") as handle:
        started = time.monotonic()
        told = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    say(f"      {name}: another run is building it; waiting")
                    told = True
            if time.monotonic() - started > LOCK_LIMIT_S:
                raise ToolchainError(
                    f"Another run has been building {name} for {spoken(LOCK_LIMIT_S)}. "
                    "This one gave up.\nEnd that run, then try again."
                )
            time.sleep(0.5)
        yield
