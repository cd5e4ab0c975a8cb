"""Runs on the host as root: writes, reads and removes one entry of the model repository.

Shipped by `components.providers.repository_entry` over SSH, so: Python ≥ 3.9, standard library
only, nothing beside this file. `main(payload)` answers with JSON; `{"refused": kind, …}` is what
the provider turns into a refusal.

An entry is replaced as a whole: a complete directory is staged beside the repository, on the same
file system and outside of what Triton scans, and swapped in by one rename. A reader sees the old
entry or the new one, never a mixture, and a full disk leaves the old one as it was.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import secrets
import shutil
import stat
import time
from pathlib import Path
from typing import Any

MARKER = ".berth-owner.json"
IGNORED = "__pycache__"  # Triton's python backend leaves it in version directories
LARGEST_TEXT = 65536  # bytes; anything larger is told by its size
LOCK_WAIT_S = 30.0
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


class Refused(Exception):  # noqa: N818 - as in models.refusal
    """What the provider is to refuse with: a kind and its values."""

    def __init__(self, kind: str, **values: Any) -> None:
        super().__init__(kind)
        self.answer = {"refused": kind, **values}


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Do `payload["action"]`: `ensure`, `read` or `delete`."""
    action = {"ensure": ensure, "read": read, "delete": delete}[payload["action"]]
    try:
        return action(Path(payload["repository"]), payload["entry"], payload)
    except Refused as refused:
        return refused.answer


def ensure(repository: Path, entry: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Make the entry hold exactly `files`; answers its revision, new if anything was written."""
    _see_weights(Path(payload["weights"]))
    if not repository.is_dir():
        raise Refused("no-repository")
    with _Staging(repository, entry) as staging:
        target = repository / entry
        revision = _own(target, payload["owner"])
        if revision and _files(target) == payload["files"]:
            return {"revision": revision, "written": False}
        revision = secrets.token_hex(8)
        marker = json.dumps({"owner": payload["owner"], "revision": revision}) + "\n"
        try:
            staged = staging.directory()
            _write(staged, {**payload["files"], MARKER: marker})
        except OSError as error:
            staging.clean()  # first, so that what is free is what there was to write to
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Refused("disk-full", **_free(repository)) from error
            raise
        _swap(staged, target, staging.directory(make=False))
        _sync(repository)
    return {"revision": revision, "written": True}


def read(repository: Path, entry: str, payload: dict[str, Any]) -> dict[str, Any]:
    """What is really there: `{}` if there is no such entry, or it is not the owner's."""
    target = repository / entry
    try:
        revision = _own(target, payload["owner"])
    except Refused:
        return {}
    return {"revision": revision, "files": _files(target)} if revision else {}


def delete(repository: Path, entry: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Remove the entry; gone is fine, somebody else's is left alone and named."""
    target = repository / entry
    if not target.exists():
        return {"removed": False}
    with _Staging(repository, entry) as staging:
        if not _own(target, payload["owner"]):
            return {"removed": False}
        target.rename(staging.directory(make=False))
        _sync(repository)
    return {"removed": True}


class _Staging:
    """The directory beside the repository where entries are put together; one writer at a time."""

    def __init__(self, repository: Path, entry: str) -> None:
        self._place = repository.parent / ".staging"
        self._repository = repository
        self._entry = entry

    def __enter__(self) -> _Staging:
        try:
            self._place.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(self._place / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Refused("disk-full", **_free(self._repository)) from error
            raise
        give_up = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    os.close(self._lock)
                    raise Refused("busy", seconds=LOCK_WAIT_S) from None
                time.sleep(0.05)
        self.clean()  # what a killed run left
        if self._place.stat().st_dev != self._repository.stat().st_dev:
            os.close(self._lock)
            raise Refused("other-file-system", staging=str(self._place))
        return self

    def __exit__(self, *_: object) -> None:
        self.clean()
        os.close(self._lock)

    def directory(self, make: bool = True) -> Path:
        # "@" is in no entry's name, so one entry's leftovers are never taken for another's.
        path = self._place / f"{self._entry}@{secrets.token_hex(4)}"
        if make:
            path.mkdir(mode=0o755)
        return path

    def clean(self) -> None:
        for leftover in self._place.glob(f"{self._entry}@*"):
            shutil.rmtree(leftover, ignore_errors=True)


def _own(target: Path, owner: str) -> str:
    """The revision of the owner's entry, "" if there is none; refuses another's."""
    if not target.exists() and not target.is_symlink():
        return ""
    try:
        marker = json.loads((target / MARKER).read_text())
        theirs, revision = str(marker["owner"]), str(marker["revision"])
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused("no-marker") from None
    if theirs != owner:
        raise Refused("foreign", owner=theirs)
    return revision


def _files(target: Path) -> dict[str, str]:
    """Relative path → text of everything there; empty directories too (Triton sees versions)."""
    found: dict[str, str] = {}
    for path in sorted(target.rglob("*")):
        name = path.relative_to(target).as_posix()
        if name == MARKER or IGNORED in path.parts:
            continue
        if path.is_symlink():
            found[name] = f"<link to {os.readlink(path)}>"  # noqa: PTH115 - 3.9 has no better
        elif path.is_dir():
            if not any(child.name != IGNORED for child in path.iterdir()):
                found[name + "/"] = ""
        else:
            found[name] = _content(path)
    return found


def _content(path: Path) -> str:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return "<not a file>"
    if status.st_size > LARGEST_TEXT:
        return f"<{status.st_size} bytes>"
    if status.st_mode & 0o777 != 0o644:
        return f"<mode {status.st_mode & 0o777:o}>\n{path.read_bytes().decode(errors='replace')}"
    return path.read_bytes().decode(errors="replace")


def _write(staged: Path, files: dict[str, str]) -> None:
    staged.chmod(0o755)
    for name, text in files.items():
        path = staged / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(f"not a path inside an entry: {name}")
        for parent in reversed(path.relative_to(staged).parents[:-1]):
            (staged / parent).mkdir(exist_ok=True)
            (staged / parent).chmod(0o755)
        with path.open("wb") as file:
            file.write(text.encode())
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
    for directory in [path for path in staged.rglob("*") if path.is_dir()] + [staged]:
        _sync(directory)


def _swap(staged: Path, target: Path, aside: Path) -> None:
    """Put `staged` at `target` by one rename; what was there ends in the staging directory."""
    if not target.exists():
        staged.rename(target)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    exchange = getattr(libc, "renameat2", None)
    arguments = (_AT_FDCWD, os.fsencode(staged), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE)
    if exchange is not None and exchange(*arguments) == 0:
        return
    # No such call (glibc < 2.28) or a file system without it: a moment with no entry at all, which
    # a load at that moment would report; still never a mixture.
    target.rename(aside)
    try:
        staged.rename(target)
    except OSError:
        aside.rename(target)
        raise


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _see_weights(weights: Path) -> None:
    if not weights.is_dir():
        there = sorted(path.name for path in weights.parent.glob("*") if path.is_dir())
        raise Refused("no-weights", there=there)
    if not (weights / "config.json").is_file():
        there = sorted(path.name for path in weights.iterdir())[:20]
        raise Refused("no-weights-config", there=there)


def _free(repository: Path) -> dict[str, int]:
    status = os.statvfs(repository)
    return {"free_kib": status.f_bavail * status.f_frsize // 1024, "free_inodes": status.f_favail}
