"""One connection per host for all operations of a process.

A login costs more than most of what is done over it, and a refresh has a dozen operations per host.
The connections live in an event loop of their own thread and end with the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import asyncssh

from components.providers.ssh import Session, command_slots
from components.providers.ssh_connect import connect
from components.providers.ssh_target import SshTarget

T = TypeVar("T")


class _Shared:
    """An open connection, and the commands that may run over it at once."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self.connection = connection
        self.slots = command_slots()


_starting = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []
_logins: dict[SshTarget, asyncio.Task[_Shared]] = {}
"""Used in the loop's thread only."""


def on_host(ssh: Mapping[str, Any], work: Callable[[Session], Awaitable[T]]) -> T:
    """Do `work` on a host and wait for it, from any thread that runs no event loop.

    Raises:
        Refusal: the host cannot be reached, or does not let us in, or is another one; and what
            `work` raises.
    """
    target = SshTarget.of(ssh)

    async def do() -> T:
        shared = await _connected(target)
        return await work(Session(target, shared.connection, shared.slots))

    return asyncio.run_coroutine_threadsafe(do(), _loop()).result()


async def _connected(target: SshTarget) -> _Shared:
    login = _logins.get(target)
    if login is not None and login.done() and not _usable(login):
        login = None
    if login is None:
        # Whoever comes while the login is under way waits for it, and shares its failure: a dozen
        # operations on a host that does not answer take no longer than one.
        login = _logins[target] = asyncio.create_task(_log_in(target))
    return await asyncio.shield(login)


def _usable(login: asyncio.Task[_Shared]) -> bool:
    if login.cancelled() or login.exception() is not None:
        return False
    return not login.result().connection.is_closed()


async def _log_in(target: SshTarget) -> _Shared:
    return _Shared(await connect(target))


def _loop() -> asyncio.AbstractEventLoop:
    with _starting:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="berth-ssh", daemon=True).start()
            _loops.append(loop)
        return _loops[0]
