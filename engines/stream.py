"""A stream of events that any task may end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Self

from engines.failure import EngineError, silent

if TYPE_CHECKING:
    from engines.doubt import Doubt
    from engines.protocol import Event, Patience


class Stream:
    """Iterate over it, then close it; closing ends the engine's request.

    An async generator alone cannot be closed while another task waits for its next event, which is
    when a cancel comes. Here the wait has a time limit anyway, and a cancel moves it to now.

    Raises:
        EngineError: from the iteration, also when the engine is silent for too long.
    """

    def __init__(
        self, events: AsyncGenerator[Event, None], patience: Patience, doubt: Doubt
    ) -> None:
        self._events = events
        self._doubt = doubt
        self._doubting: asyncio.Task[None] | None = None
        self._verdict: EngineError | None = None
        self._patience = patience
        self._wait_s = patience.first_s
        self._deadline: float | None = None
        self._limit: asyncio.Timeout | None = None
        self._closing = False
        self._ended = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._ended.is_set():
            raise StopAsyncIteration
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._deadline is None:
            self._deadline = now + self._patience.whole_s
        wait_s = min(self._wait_s, self._deadline - now)
        silent_for = loop.call_later(self._doubt.after_s, self._begin_to_doubt)
        try:
            async with asyncio.timeout(wait_s) as self._limit:
                event = await anext(self._events)
        except TimeoutError:
            self._ended.set()
            if self._closing:
                raise StopAsyncIteration from None
            if self._verdict is not None:
                raise self._verdict from None
            raise silent(self._wait_s) if wait_s == self._wait_s else self._too_long() from None
        except BaseException:
            self._ended.set()
            raise
        finally:
            self._limit = None
            silent_for.cancel()
            if self._doubting is not None:
                self._doubting.cancel()
                self._doubting = None
        if self._closing:
            # The event came at the very moment of the cancel: whoever closes waits for this.
            self._ended.set()
            await self._events.aclose()
            raise StopAsyncIteration
        self._wait_s = self._patience.between_s
        return event

    def _begin_to_doubt(self) -> None:
        self._doubting = asyncio.ensure_future(self._end_if_dead())

    async def _end_if_dead(self) -> None:
        self._verdict = await self._doubt.lasting()
        self._end_the_wait()

    def _end_the_wait(self) -> None:
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    def _too_long(self) -> EngineError:
        return EngineError(
            f"the answer took longer than {self._patience.whole_s:g} s",
            status=504,
            retry=False,
            code="too_long",
        )

    async def aclose(self) -> None:
        """End it; returns once the connection is closed. Any task may, any number of times."""
        self._closing = True
        if self._limit is not None:
            self._end_the_wait()
            await self._ended.wait()
        elif not self._ended.is_set():
            self._ended.set()
            await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
