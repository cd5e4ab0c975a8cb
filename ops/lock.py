"""A stack's lock in a file backend: whose it is, and whether that run is still alive.

A run that was killed (`kill -9`, power) leaves its lock behind, and every later run would stop at
it. Other backends hold their locks themselves.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

from models.refusal import Refusal

WAIT_S = 1800
"""How long another run on this machine is waited for, in seconds."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lock."""

    pid: int
    host: str
    user: str

    @property
    def alive(self) -> bool:
        """Whether it runs; on another machine that cannot be known, so it counts as alive."""
        if self.host != socket.gethostname():
            return True
        try:
            name, _, rest = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")
        except OSError:
            return False
        zombie = rest.split()[0] == "Z"
        return "pulumi" in name and not zombie


def holders(backend: str, stack: str, project: str = "berth") -> list[Holder]:
    """The lock files of a stack; none for a backend that is not a directory."""
    if not backend.startswith("file://"):
        return []
    root = Path(urlparse(backend).path) / ".pulumi" / "locks" / "organization" / project / stack
    found = []
    for file in sorted(root.glob("*.json")):
        try:
            lock = json.loads(file.read_text())
            found.append(Holder(int(lock["pid"]), lock["hostname"], lock["username"]))
        except (OSError, ValueError, KeyError):
            continue  # Released, or only half written by a run that was killed just then.
    return found


def wait_for_others(
    backend: str,
    stack: str,
    say: Callable[[str], None],
    *,
    project: str = "berth",
    wait_s: float = WAIT_S,
    poll_s: float = 1.0,
) -> bool:
    """Wait until no living run holds the stack.

    Returns:
        Whether locks of runs that are gone are left, to be cancelled.

    Raises:
        Refusal: if a run still holds it after `wait_s`, or one on another machine does.
    """
    deadline = time.monotonic() + wait_s
    told = False
    while True:
        held = holders(backend, stack, project)
        alive = [holder for holder in held if holder.alive]
        if not alive:
            return bool(held)
        other = alive[0]
        elsewhere = other.host != socket.gethostname()
        if elsewhere or time.monotonic() > deadline:
            raise Refusal(
                f"stack {stack} is locked by {other.user}@{other.host}, process {other.pid}",
                consequence="Two runs at once would write over each other's state.",
                fix=f"wait for it; if it is surely gone: `pulumi cancel -s {stack}`.",
            )
        if not told:
            say(f"another run holds stack {stack} (process {other.pid}); waiting for it")
            told = True
        time.sleep(poll_s)
