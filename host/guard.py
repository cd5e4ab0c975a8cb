"""Keeps a host set up while others stand on it."""

from __future__ import annotations

import json
from pathlib import Path

from host.ledger import BUSY_S, changing, reading, remove
from models.claim_record import ClaimRecord
from models.refusal import Refusal

MARKER = ".berth-owner.json"
"""As in `host/model_entry.py`."""


def nobody_else(path: Path, stack: str, repository: Path | None, busy_s: float = BUSY_S) -> None:
    """Pass, or name everybody else who stands on this host.

    Args:
        path: the ledger.
        stack: `project/stack` of the host's own stack.
        repository: the model repository; None: its entries are not looked at.
        busy_s: how long others are waited for, in seconds.

    Raises:
        Refusal: other stacks, or people, hold claims here or have entries in the repository.
    """
    with reading(path, busy_s) as ledger:
        _refuse(ledger.claims() if ledger else [], stack, repository)


def dismantle(path: Path, stack: str, busy_s: float = BUSY_S) -> None:
    """Remove the ledger with the stack's own claims, unless somebody else's are in it.

    Raises:
        Refusal: they are.
    """
    if not path.exists():
        return
    with changing(path, busy_s) as ledger:
        _refuse(ledger.claims(), stack, None)
        remove(path)


def _refuse(claims: list[ClaimRecord], stack: str, repository: Path | None) -> None:
    others = [f"claim of {record.said()}" for record in claims if record.stack != stack]
    others += _entries(stack, repository) if repository else []
    if others:
        raise Refusal(
            f"others stand on this host: {'; '.join(others)}",
            consequence="They would lose their servers, so nothing of it is taken down.",
            fix="pulumi destroy their stacks first (owners are project/stack/demo); a claim whose "
            "stack is gone: `berth-host claims --text`, `berth-host release --name NAME` there.",
        )


def _entries(stack: str, repository: Path) -> list[str]:
    """Entries that are not this stack's; the owner stands in the entry's marker."""
    found = []
    for entry in sorted(repository.glob("*/")) if repository.is_dir() else []:
        if not entry.is_dir() or entry.name.startswith("."):
            continue
        try:
            owner = str(json.loads((entry / MARKER).read_text())["owner"])
        except (OSError, ValueError, KeyError, TypeError):
            owner = ""
        if not owner.startswith(f"{stack}/"):
            found.append(f"{entry.name} ({owner or 'not made by Berth'})")
    return found
