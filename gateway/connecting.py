"""Requests to engines, none of which leaves a connection behind when its client goes.

httpx's pool loses a connection whose request is cancelled between the connect and the first byte
that is sent: nobody's, yet neither idle nor closed, it stays open for ever, and so it does in the
engine. That was one in forty streams that clients cut at once. (httpcore's issues 658 and 1093;
read at httpcore 1.0.9, anyio 4.16.)
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import httpx

KEPT = 64
KEPT_S = 2
"""vLLM's and TensorRT-LLM's servers close a connection that is idle for 5 s; one that is used again
at that moment would break, so they are given up earlier here."""
_SENDING = "http11.send_request_headers.started"
"""httpcore's name for the moment from which a cancel closes the connection."""


class EngineTransport(httpx.AsyncHTTPTransport):
    """httpx's own, but a cancel waits until there is a connection that it can close.

    That is no longer than a connect may take. nginx bounds how many connections there are.
    """

    def __init__(self) -> None:
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=KEPT, keepalive_expiry=KEPT_S
        )
        super().__init__(limits=limits, trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As httpx's, up to the answer's headers."""
        sending = asyncio.Event()

        async def told(event: str, _: object) -> None:
            if event == _SENDING:
                sending.set()

        request.extensions = {**request.extensions, "trace": told}
        # A task of its own is cancelled once and never again while it cleans up.
        asking = asyncio.ensure_future(super().handle_async_request(request))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            ending = asyncio.ensure_future(_end(asking, sending))
            with suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
            raise


async def _end(asking: asyncio.Future[httpx.Response], sending: asyncio.Event) -> None:
    at_it = asyncio.ensure_future(sending.wait())
    both: set[asyncio.Future[Any]] = {asking, at_it}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    at_it.cancel()
    asking.cancel()
    with suppress(asyncio.CancelledError, httpx.HTTPError):
        await (await asking).aclose()
