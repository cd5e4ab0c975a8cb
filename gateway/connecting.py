"""Connections to engines, none of which outlives its request when the client goes.

httpx's pool loses connections under cancels: closing one takes several turns of the event loop
there, and a task that is cancelled in one of them (once is enough, at an answer's very end) leaves
it open for ever, in the engine too. (httpcore's issues 658, 830 and 1093; read at httpcore 1.0.9
and anyio 4.16, whose shields hold no cancel of asyncio's own.) Here closing is one call that waits
for nothing, so there is no moment at which a cancel could prevent it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpcore
import httpx

from gateway.engine_socket import EngineSocket

KEPT = 64
KEPT_S = 2
"""vLLM's and TensorRT-LLM's servers close a connection that is idle for 5 s; one that is used again
at that moment would break, so they are given up earlier here."""


class EngineTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 to engines on loopback. nginx bounds how many connections there are.

    At most `KEPT` idle connections are kept, each for `KEPT_S` seconds, and closed soon after.
    """

    def __init__(self) -> None:
        self._idle: list[_Connection] = []
        self._sweep: asyncio.TimerHandle | None = None
        self._ended = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer's headers, and its body as it comes.

        Raises:
            httpx.TransportError: as httpx's own transport.
        """
        url = request.url
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        connection = self._taken(asked.url.origin)
        try:
            with _httpx_errors():
                answer = await connection.http.handle_async_request(asked)
        except BaseException:
            connection.socket.close()
            raise
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(self, connection, answer),
            extensions=answer.extensions,
        )

    def _taken(self, origin: httpcore.Origin) -> _Connection:
        """An idle connection, the one that was used last, or else a new one."""
        for connection in reversed(self._idle):
            if connection.http.can_handle_request(origin):
                self._idle.remove(connection)
                if not connection.http.has_expired():
                    return connection
                connection.socket.close()
        return _Connection(origin)

    def give_back(self, connection: _Connection) -> None:
        """Keep a connection whose answer was read to its end; close every other."""
        if self._ended or len(self._idle) >= KEPT or not connection.http.is_idle():
            connection.socket.close()
            return
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep_later()

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(KEPT_S / 2, self._swept)

    def _swept(self) -> None:
        self._sweep = None
        for connection in [each for each in self._idle if each.http.has_expired()]:
            self._idle.remove(connection)
            connection.socket.close()
        if self._idle:
            self._sweep_later()

    async def aclose(self) -> None:
        """Close what is idle; what is in use closes with its answer."""
        self._ended = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        while self._idle:
            self._idle.pop().socket.close()


class _Connection:
    def __init__(self, origin: httpcore.Origin) -> None:
        self.socket = EngineSocket()
        self.http = httpcore.AsyncHTTPConnection(
            origin, keepalive_expiry=KEPT_S, network_backend=self.socket
        )


class _Body(httpx.AsyncByteStream):
    def __init__(
        self, transport: EngineTransport, connection: _Connection, answer: httpcore.Response
    ) -> None:
        self._transport = transport
        self._connection = connection
        self._answer = answer
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            async for part in self._answer.aiter_stream():
                yield part

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            # It finds out whether the answer is through; cut short, it has not, and that is a no.
            await self._answer.aclose()
        finally:
            self._transport.give_back(self._connection)


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """httpx's failures are httpcore's by the same names."""
    try:
        yield
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        kind = getattr(httpx, type(error).__name__, httpx.TransportError)
        raise kind(str(error)) from error
