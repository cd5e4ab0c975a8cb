"""State of a stack whose host is gone for good."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ops.drive import Stack, say


def forget_if_changed(stack: Stack, identity: Path) -> None:
    """Forget a stack's state when the file that identifies its host is not the one it knew.

    A throwaway host that was made anew holds nothing of what the state tells of, and has another
    host key, so that nothing there could be refreshed or deleted.
    """
    known = stack.project / ".berth" / f"host-of-{stack.name}"
    now = hashlib.sha256(identity.read_bytes()).hexdigest()
    if known.is_file() and known.read_text() != now:
        say(f"the host of stack {stack.name} was made anew: its old state is forgotten")
        stack.prepare()  # A killed run's lock would be in the way.
        stack.forget()
    known.write_text(now)
