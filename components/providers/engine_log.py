"""The root cause of a failed load, where Triton's answer only points to the log.

vLLM's engine runs in a process of its own. When that fails, the load is answered with `Engine core
initialization failed. See root cause above`, and the cause stands in the unit's journal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from components.providers.load_failure import UNKNOWN, recognise
from components.providers.ssh import Session

POINTS_TO_THE_LOG = re.compile(
    r"[Ss]ee root cause above|Engine core initialization failed|Executor worker returned error"
)
LINES = "2000"
"""How much of the journal is read: a vLLM start with its tracebacks is some hundred lines."""


async def cursor(session: Session, unit: str) -> str:
    """The journal's present end for a unit; empty where the journal has nothing of it.

    Raises:
        Refusal: the connection broke.
    """
    said = await _journal(session, "-u", unit, "-n", "0", "--show-cursor")
    return said.rpartition("-- cursor: ")[2].strip() if "-- cursor: " in said else ""


async def root_cause(session: Session, unit: str, after: str) -> str:
    """What a unit's journal has said since `after` that explains a failed load; else empty.

    Raises:
        Refusal: the connection broke.
    """
    since = ["--after-cursor", after] if after else []
    return explaining((await _journal(session, "-u", unit, "-n", LINES, *since)).splitlines())


def explaining(lines: Sequence[str]) -> str:
    """The last line that Berth recognises as a cause of failed loads; else empty.

    The last, because engines log trouble that they get over before the one that ends them.
    """
    known = (
        line.strip()
        for line in reversed(lines)
        if not POINTS_TO_THE_LOG.search(line) and recognise(line) is not UNKNOWN
    )
    return next(known, "")


async def _journal(session: Session, *arguments: str) -> str:
    done = await session.run(
        "journalctl",
        "--no-pager",
        "--quiet",
        "-o",
        "cat",
        *arguments,
        doing="reading the unit's journal",
        as_root=True,
        timeout_s=20,
    )
    return done.stdout if done.status == 0 else ""
