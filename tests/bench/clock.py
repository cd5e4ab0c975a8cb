"""Taking times, and telling them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

RUNS = 5
Row = tuple[str, str, str]
"""What, figure, aim."""


def seconds(what: Callable[[], Any]) -> float:
    """How long it takes."""
    started = time.monotonic()
    what()
    return time.monotonic() - started


def say(what: str) -> None:
    """Tell how far it is."""
    print(f"[bench] {what}", file=sys.stderr, flush=True)
