"""One load or unload at a time per server; different servers at the same time."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from components.providers.progress import EVERY_S, say

# Triton answers its health probe from the same 8 threads that wait for loads: ten at once starve
# it (facts), and systemd or a person would take the server for dead.
_turns: defaultdict[tuple[str, int, int], threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def server_turn(server: tuple[str, int, int], what: str) -> Iterator[None]:
    """Wait for the other loads of this process at a server to end, each of which is bounded.

    Args:
        server: address, SSH port, and the server's port on the host's loopback.
        what: what waits, for the person: "triton@2: loading demo.gemma".
    """
    turn = _turns[server]
    while not turn.acquire(timeout=EVERY_S):
        say(f"{what}: waiting for another model's turn")
    try:
        yield
    finally:
        turn.release()
