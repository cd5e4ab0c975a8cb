"""HTTP to a port of a host's loopback, through SSH."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from components.providers.ssh import Session

LONGEST_SOCKET_PATH = 100
"""A UNIX socket's path holds 108 bytes (unix(7))."""


@asynccontextmanager
async def tunnel(
    session: Session, port: int, headers: Mapping[str, str]
) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose requests reach `127.0.0.1:port` on the host.

    Its near end is a UNIX socket in a directory of mode 0700: a local TCP port could be used by
    every user of this machine for as long as the tunnel stands.

    Raises:
        Refusal: sshd does not forward (found by `Session.listens`, which is to be asked first).
    """
    with tempfile.TemporaryDirectory(prefix="berth-", dir=_short_place()) as directory:
        path = str(Path(directory) / "http")
        listener = await session.forward(path, port)
        transport = httpx.AsyncHTTPTransport(uds=path)
        try:
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", headers=headers
            ) as client:
                yield client
        finally:
            listener.close()


def _short_place() -> str | None:
    """None for the usual temporary directory; `/tmp` where that one's path is too long."""
    too_long = len(tempfile.gettempdir()) + len("/berth-12345678/http") > LONGEST_SOCKET_PATH
    return "/tmp" if too_long else None  # noqa: S108 - the directory made in it is private
