"""Asks `berth-host`, the program that the host's stack installs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from components.providers.ssh import HostProgramError, Session
from models.refusal import Refusal

PROGRAM = "/usr/local/bin/berth-host"
"""Named with its path: sudo's `secure_path` need not hold /usr/local/bin."""
TIMEOUT_S = 150.0
"""Bound on one call, in seconds; `berth-host` itself gives up on a ledger that is in use after 60,
on nvidia-smi after 15, and on requests under way after at most 120."""


async def ask(
    session: Session, *command: str, payload: Mapping[str, Any] | None = None, doing: str
) -> dict[str, Any] | None:
    """Its answer; None where it is not installed.

    Args:
        command: its words.
        payload: goes in as JSON by standard input, which no process list shows.
        doing: what it does, for refusals ("reading the claims").

    Raises:
        Refusal: the host cannot be reached, or `berth-host` refuses.
        HostProgramError: it ended without an answer.
    """
    done = await session.run(
        PROGRAM,
        *command,
        doing=doing,
        stdin="" if payload is None else json.dumps(payload),
        as_root=True,
        timeout_s=TIMEOUT_S,
    )
    if done.status != 0 and _missing(done.stderr):
        return None
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = f"{done.stdout[-500:]}{done.stderr[-2000:]}".strip()
        raise HostProgramError(
            f"berth-host {' '.join(command)} ended with {done.status}: {said}"
        ) from None
    if "refused" in answer:
        raise Refusal(**answer["refused"])
    return answer


def _missing(said: str) -> bool:
    """The shells' and sudo's words for a program that is not there."""
    return PROGRAM in said and ("not found" in said or "No such file" in said)
