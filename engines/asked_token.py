"""Readiness by the only proof there is: a token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from engines.failure import EngineError
from engines.protocol import Completion, Health, Request, Sampling

ANSWER_S = 30.0
"""A canary waits behind running requests; longer than this no client should be sent here."""


CANARY = Request(prompt="1", sampling=Sampling(max_tokens=1, temperature=0.0))
"""One token of a prompt that needs no chat template; no id, since several may run at once."""


async def answers_a_token(canary: Callable[[], Awaitable[Completion]]) -> Health:
    """Ask for the token."""
    try:
        async with asyncio.timeout(ANSWER_S):
            await canary()
    except TimeoutError:
        return Health(False, f"no token within {ANSWER_S:g} s", late=True)
    except EngineError as error:
        return Health(False, f"no token: {error.message}", late=error.late)
    return Health(True)
