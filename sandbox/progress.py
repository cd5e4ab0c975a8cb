"""One line a step on standard error, with the seconds it took and the seconds so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_STARTED = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", file=sys.stderr, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Announce, do, and say how long it took."""
    say(f"{text} …")
    before = time.monotonic()
    yield
    say(f"{text}: done in {time.monotonic() - before:.1f} s")
