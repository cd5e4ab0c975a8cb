"""One TCP connection to an engine that closes at once."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpcore

Address = tuple[socket.AddressFamily, Any]


class EngineSocket(httpcore.AsyncNetworkBackend, httpcore.AsyncNetworkStream):
    """What httpcore connects with, for a single connection, and then reads and writes.

    A bare socket, not asyncio's transport: nothing but this object holds it, and it is closed in
    the call that says so.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's)
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first of the host's addresses that answers, within `timeout` seconds.

        Raises:
            httpcore.ConnectError, httpcore.ConnectTimeout
        """
        failures: list[OSError] = []
        async with _within(timeout, httpcore.ConnectTimeout, httpcore.ConnectError):
            for family, address in await _addresses(host, port):
                try:
                    await self._connect(family, address)
                except OSError as error:
                    failures.append(error)
                else:
                    return self
            raise failures[0]

    async def _connect(self, family: socket.AddressFamily, address: Any) -> None:
        self.close()
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        # Headers and body are written apart: Nagle's algorithm would hold the body for 40 ms.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(self._socket, address)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        async with _within(timeout, httpcore.ReadTimeout, httpcore.ReadError):
            return await asyncio.get_running_loop().sock_recv(self._open(), max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        async with _within(timeout, httpcore.WriteTimeout, httpcore.WriteError):
            await asyncio.get_running_loop().sock_sendall(self._open(), buffer)

    def _open(self) -> socket.socket:
        if self._socket is None:
            raise OSError("the connection is closed")
        return self._socket

    def close(self) -> None:
        """Close it, if it is open; waits for nothing."""
        closing, self._socket = self._socket, None
        if closing is not None:
            loop = asyncio.get_running_loop()
            # Where another task still waits for it: its number is soon another socket's.
            loop.remove_reader(closing)
            loop.remove_writer(closing)
            closing.close()

    async def aclose(self) -> None:
        self.close()

    def get_extra_info(self, info: str) -> Any:
        """`is_readable`: of an idle connection, that the engine has closed it."""
        if info != "is_readable":
            return None
        if self._socket is None:
            return True
        looking = select.poll()
        looking.register(self._socket, select.POLLIN)
        return bool(looking.poll(0))


async def _addresses(host: str, port: int) -> list[Address]:
    with suppress(socket.gaierror):  # A name, and not numbers, which take no thread to read.
        flags = socket.AI_NUMERICHOST
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
        return [(each[0], each[4]) for each in found]
    loop = asyncio.get_running_loop()
    return [
        (each[0], each[4]) for each in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    ]


@asynccontextmanager
async def _within(
    seconds: float | None, late: type[Exception], failed: type[Exception]
) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise late from error
    except OSError as error:
        raise failed(str(error)) from error
