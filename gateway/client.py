"""The client on the other end: bodies with a bound, and work that ends when it goes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engines.failure import EngineError

_log = logging.getLogger("berth.adapter")
TAKES_S = 60.0
"""A client that takes nothing for as many seconds is gone: its generation holds memory."""
Result = TypeVar("Result")


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


async def body_of(request: Request, most_mib: int) -> bytes:
    """The whole body.

    Raises:
        EngineError: it is larger than `most_mib` (413).
        ClientGoneError: the client went before it was through.
    """
    content = bytearray()
    try:
        async for piece in request.stream():
            content += piece
            if len(content) > most_mib * 2**20:
                raise EngineError(
                    f"the body is larger than {most_mib} MiB",
                    status=413,
                    retry=False,
                    code="content_too_large",
                )
    except ClientDisconnect:
        raise ClientGoneError from None
    return bytes(content)


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """`work`'s result; if the client goes first, `work` is cancelled and has ended.

    Raises:
        ClientGoneError: the client went.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request.receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGoneError
    finally:
        await _ended(working, gone)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class EventStream(Response):
    """Server-sent events from a source that is closed however this ends.

    Starlette's own streaming answer leaves the source to the garbage collector where the client
    goes while something is being sent; here that would leave a generation running.
    """

    media_type = "text/event-stream"

    def __init__(self, source: AsyncGenerator[str, None], first: str = "") -> None:
        """`first` was taken from the source already.

        It is not put before it by a generator around both: one that is closed before it was begun
        closes nothing inside it, and a client may go before the first byte.
        """
        self._source = source
        self._first = first
        self.background = None
        self.status_code = 200
        # Proxies buffer what they do not know to be a stream.
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except TimeoutError:
            _log.info("a client took nothing for %g s", TAKES_S)
        finally:
            await _ended(sending, gone)
            await self._source.aclose()

    async def _send(self, send: Send) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if self._first:
            await self._sent(send, self._first)
        async for event in self._source:
            await self._sent(send, event)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    @staticmethod
    async def _sent(send: Send, event: str) -> None:
        async with asyncio.timeout(TAKES_S):
            await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
