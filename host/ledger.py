"""The ledger: who may hold which GPU memory on this host, in one SQLite file.

Every change is one transaction, durable before it is answered (`synchronous=EXTRA`: in rollback
mode less than that may undo the last one at a power cut, https://sqlite.org/pragma.html). Locks are
the kernel's and end with the process that holds them.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from host.lock_holder import lock_holder
from models.claim_record import ClaimRecord
from models.overlap import Room
from models.refusal import Refusal

PATH = Path("/var/lib/berth/ledger.db")
VERSION = 1
BERTH = 0x42657274
"""SQLite's `application_id` of a ledger: "Bert"."""
BUSY_S = 60.0
_SCHEMA = (
    "CREATE TABLE gpu"
    " (uuid TEXT PRIMARY KEY, position INTEGER NOT NULL, cuda_mib INTEGER NOT NULL)",
    "CREATE TABLE claim (name TEXT PRIMARY KEY, owner TEXT NOT NULL, record TEXT NOT NULL)",
    f"PRAGMA application_id = {BERTH}",
    f"PRAGMA user_version = {VERSION}",
)


class Ledger:
    """What stands in the ledger during one transaction."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path

    def claims(self) -> list[ClaimRecord]:
        """All claims, by name.

        Raises:
            Refusal: one of them cannot be read.
        """
        rows = self._database.execute("SELECT record FROM claim ORDER BY name").fetchall()
        try:
            return [ClaimRecord.of(json.loads(row[0]), at=str(self._path)) for row in rows]
        except ValueError as error:
            raise _broken(self._path, f"a claim in it is not JSON ({error})") from None

    def put(self, record: ClaimRecord) -> None:
        """Write a claim, in place of one of the same name."""
        self._database.execute(
            "INSERT OR REPLACE INTO claim (name, owner, record) VALUES (?, ?, ?)",
            (record.name, record.owner, json.dumps(record.json())),
        )

    def drop(self, names: Iterable[str]) -> None:
        """Remove claims; those that are not there are fine."""
        self._database.executemany("DELETE FROM claim WHERE name = ?", [(n,) for n in names])

    def rooms(self, host: str) -> dict[tuple[str, str], Room]:
        """What each known GPU has to give, as the overlap rule takes it."""
        rows = self._database.execute("SELECT uuid, position, cuda_mib FROM gpu").fetchall()
        return {(host, uuid): Room(index, mib) for uuid, index, mib in rows}

    def know(self, gpus: Iterable[Mapping[str, Any]]) -> None:
        """Remember GPUs as `host.gpus` lists them; CUDA gives what the driver does not keep."""
        self._database.executemany(
            "INSERT OR REPLACE INTO gpu (uuid, position, cuda_mib) VALUES (?, ?, ?)",
            [(gpu["uuid"], gpu["index"], gpu["memory_mib"] - gpu["reserved_mib"]) for gpu in gpus],
        )


@contextmanager
def changing(path: Path, busy_s: float = BUSY_S) -> Iterator[Ledger]:
    """The ledger for one change: all of it stands at the end of the block, or nothing of it.

    Raises:
        Refusal: it is no ledger, a newer one, in use for too long, or cannot be written.
    """
    _make_folder(path.parent)
    with _connected(path, busy_s, "BEGIN IMMEDIATE") as database:
        yield Ledger(database, path)


@contextmanager
def reading(path: Path, busy_s: float = BUSY_S) -> Iterator[Ledger | None]:
    """The ledger as it stands; None where there is none yet, and none is made.

    Raises:
        Refusal: as `changing` does.
    """
    if not path.exists():
        yield None
        return
    with _connected(path, busy_s, "BEGIN") as database:
        made = database.execute("PRAGMA user_version").fetchone()[0]
        yield Ledger(database, path) if made else None


def remove(path: Path) -> None:
    """Remove the ledger's file; only inside `changing`, after looking who else is in it."""
    path.unlink()
    _sync(path.parent)


@contextmanager
def _connected(path: Path, busy_s: float, begin: str) -> Iterator[sqlite3.Connection]:
    database = None
    try:
        while True:
            before = _inode(path)
            _see_that_it_is_no_scrap(path)
            database = sqlite3.connect(str(path), timeout=busy_s, isolation_level=None)
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute(begin)
            _see_that_it_is_ours(database, path, begin)
            # Whoever waited while the ledger was removed would write to a file without a name.
            if _inode(path) == before:
                break
            database.close()
        yield database
        database.execute("COMMIT")
    except sqlite3.OperationalError as error:
        raise _refused(path, busy_s, error) from error
    except sqlite3.DatabaseError as error:
        raise _broken(path, str(error)) from error
    finally:
        if database is not None:
            database.close()


def _see_that_it_is_no_scrap(path: Path) -> None:
    """SQLite takes less than its smallest page for an empty database, and would write over it."""
    journal = path.with_name(f"{path.name}-journal")
    if path.exists() and 0 < path.stat().st_size < 512 and not journal.exists():
        raise _broken(path, f"it has {path.stat().st_size} bytes")


def _see_that_it_is_ours(database: sqlite3.Connection, path: Path, begin: str) -> None:
    version = database.execute("PRAGMA user_version").fetchone()[0]
    application = database.execute("PRAGMA application_id").fetchone()[0]
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not tables and not version:
        if begin != "BEGIN":
            for statement in _SCHEMA:
                database.execute(statement)
    elif application != BERTH:
        raise _broken(path, "it is another program's database")
    elif version > VERSION:
        raise Refusal(
            f"{path} has format {version}; this berth-host knows {VERSION} and older",
            consequence="Nothing was changed.",
            fix="`pulumi up` the host's stack with the newer Berth that wrote it.",
        )


def _refused(path: Path, busy_s: float, error: sqlite3.OperationalError) -> Refusal:
    said = str(error)
    if "locked" in said or "busy" in said:
        return Refusal(
            f"{path} is in use by {lock_holder(path)}; it was waited for {busy_s:g} s",
            consequence="Nothing was changed.",
            fix="run this again; the lock ends with that process.",
        )
    if "malformed" in said or "no such table" in said or "no such column" in said:
        return _broken(path, said)
    return Refusal(
        f"{path} cannot be used: {said}",
        consequence="Nothing was changed.",
        fix="see that root may write there and that the disk is not full (`df -h`).",
    )


def _broken(path: Path, said: str) -> Refusal:
    return Refusal(
        f"{path} is not a ledger that can be read: {said}",
        consequence="Who holds which GPU is not known, so nothing is claimed and nothing started.",
        fix=f"put a backup back, or `mv {path} {path}.broken` and `pulumi up` each stack here: "
        "that claims anew.",
    )


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sync(folder.parent)
    except OSError as error:
        raise Refusal(
            f"{folder} cannot be made: {error.strerror}",
            consequence="Nothing was changed.",
            fix="run this as root.",
        ) from None


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return -1


def _sync(folder: Path) -> None:
    handle = os.open(str(folder), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
