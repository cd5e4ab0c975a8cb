"""Lines that tell a waiting person what is going on.

The engine shows what a plugin writes to standard error as info lines beside the resources.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

FIRST_S = 3.0
"""A step that is done within this many seconds says nothing."""
EVERY_S = 10.0


def say(line: str) -> None:
    """One info line."""
    print(line, file=sys.stderr, flush=True)


@asynccontextmanager
async def progress(what: str) -> AsyncIterator[None]:
    """While the block runs: `<what>… 10 s`, first after `FIRST_S`, then every `EVERY_S` seconds."""
    task = asyncio.create_task(_tell(what))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _tell(what: str) -> None:
    began = time.monotonic()
    await asyncio.sleep(FIRST_S)
    while True:
        say(f"{what}… {time.monotonic() - began:.0f} s")
        await asyncio.sleep(EVERY_S)
