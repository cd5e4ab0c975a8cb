"""Asks an engine that has gone silent whether it is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from engines.failure import EngineError, broken

if TYPE_CHECKING:
    from engines.protocol import Completion

Result = TypeVar("Result")
ANSWER_S = 10.0
"""Bound on the question. No answer proves nothing: a busy engine lets everybody wait."""


class Doubt:
    """Of one engine. A Triton whose backend process was killed leaves its requests open for ever,
    without a word (seen on 2.51.0); a new request fails at once, and so tells of the old ones.

    Everybody who doubts shares one question, so that a busy engine is not asked more than once at a
    time.
    """

    def __init__(self, canary: Callable[[], Awaitable[Completion]], after_s: float) -> None:
        self.after_s = after_s
        self._canary = canary
        self._asking: asyncio.Task[EngineError | None] | None = None

    async def verdict(self) -> EngineError | None:
        """What a request of now fails with, or None where nothing speaks against the engine."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(self._asking)

    async def lasting(self) -> EngineError:
        """Ask until the verdict is bad; the one who waits ends it when the engine speaks again."""
        verdict = await self.verdict()
        while verdict is None:
            await asyncio.sleep(self.after_s)
            verdict = await self.verdict()
        return verdict

    async def watched(self, work: Coroutine[Any, Any, Result]) -> Result:
        """`work`'s result, unless the engine is found dead while it is waited for."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=self.after_s)
                if not task.done() and (error := await self.verdict()) and not task.done():
                    raise error
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _ask(self) -> EngineError | None:
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._canary()
        except TimeoutError:
            return None
        except EngineError as error:
            # One that blames the request says that the engine is well.
            return (
                broken(f"the engine died in mid-answer: {error.message}")
                if (error.status >= 500)
                else None
            )
        return None
