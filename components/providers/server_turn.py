"""One load or unload at a time per server; different servers at the same time.

And one at a time who ends a unit that serves one model: it may be in the way of several loads, and
what is started under its name once it has gone must not be ended in its stead.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from components.providers.progress import EVERY_S, say
from components.providers.ssh import Session
from components.providers.ssh_target import SshTarget

# Triton answers its health probe from the same 8 threads that wait for loads: ten at once starve
# it (facts), and systemd or a person would take the server for dead.
_turns: defaultdict[tuple[str, int, int], threading.Lock] = defaultdict(threading.Lock)
_ends: defaultdict[tuple[SshTarget, str], asyncio.Lock] = defaultdict(asyncio.Lock)
"""Used in the loop of `on_host` only."""


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


@asynccontextmanager
async def unit_turn(session: Session, unit: str) -> AsyncIterator[None]:
    """Wait for others of this process that end a unit, each of which is bounded."""
    async with _ends[session.target, unit]:
        yield
