"""Opening an SSH connection, within a bound, to the one machine that is meant."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import tenacity
from asyncssh.public_key import get_default_public_key_algs

from components.providers import ssh_refusals
from components.providers.ssh_target import SshTarget

CONNECT_TIMEOUT_S = 10.0
"""Bound on everything until the login, waiting for a turn and retries included, in seconds."""
KEEPALIVE_S = 5.0
KEEPALIVES_MISSED = 3
"""A host that is cut off is noticed after KEEPALIVE_S × (KEEPALIVES_MISSED + 1) = 20 s."""
LOGINS_AT_ONCE = 6
"""sshd drops logins at random beyond 10 unfinished ones (MaxStartups 10:30:100, sshd_config(5))."""

_logins: defaultdict[tuple[str, int], threading.Semaphore] = defaultdict(
    lambda: threading.Semaphore(LOGINS_AT_ONCE)
)


class _OneHostKey(asyncssh.SSHClient):
    """Lets through the declared host key and remembers what else was offered."""

    def __init__(self, declared: asyncssh.SSHKey) -> None:
        self._declared = declared
        self.offered: asyncssh.SSHKey | None = None

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        del host, addr, port  # the key alone decides
        self.offered = key
        return key == self._declared


async def connect(target: SshTarget) -> asyncssh.SSHClientConnection:
    """Log in, within `CONNECT_TIMEOUT_S`.

    Raises:
        Refusal: unreachable, key file unusable, key refused, or another host key.
    """
    try:
        declared = asyncssh.import_public_key(target.host_key)
    except (asyncssh.KeyImportError, ValueError) as error:
        raise ssh_refusals.host_key_unreadable(target, str(error)) from error
    client = _OneHostKey(declared)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S), _turn(target), _keys(target) as keys:
            return await _log_in(target, client, declared, keys)
    except TimeoutError as error:
        reason = f"no answer within {CONNECT_TIMEOUT_S:.0f} s"
        raise ssh_refusals.unreachable(target, reason) from error
    except asyncssh.HostKeyNotVerifiable as error:
        offered = client.offered.get_fingerprint() if client.offered else "a certificate"
        raise ssh_refusals.host_key_changed(target, declared.get_fingerprint(), offered) from error
    except asyncssh.PermissionDenied as error:
        raise ssh_refusals.key_refused(target) from error
    except OSError as error:
        raise ssh_refusals.unreachable(target, _reason(error)) from error
    except asyncssh.Error as error:
        raise ssh_refusals.unreachable(target, error.reason or str(error)) from error


def _reason(error: OSError) -> str:
    # asyncio puts the address in place of the reason; a name that is not found has no errno of
    # the operating system's, and several addresses have no errno at all.
    if error.errno is None or isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno)


async def _log_in(
    target: SshTarget,
    client: _OneHostKey,
    declared: asyncssh.SSHKey,
    keys: list[asyncssh.SSHKeyPair],
) -> asyncssh.SSHClientConnection:
    # The declared key's type first, so that a host with several keys shows that one; the others
    # after it, so that a machine without it shows the key it has, for the refusal.
    first = list(declared.sig_algorithms) if declared.algorithm == b"ssh-rsa" else []
    first.append(declared.algorithm)
    algorithms = first + [alg for alg in get_default_public_key_algs() if alg not in first]
    # Only a connection that sshd drops before the login is tried again: that is MaxStartups, when
    # other programs log in at the same time.
    retry = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type((asyncssh.ConnectionLost, ConnectionResetError)),
        wait=tenacity.wait_random_exponential(multiplier=0.2, max=2),
        stop=tenacity.stop_after_attempt(6),
        reraise=True,
    )
    async for attempt in retry:
        with attempt:
            return await asyncssh.connect(
                target.address,
                target.port,
                username=target.user,
                config=None,
                client_factory=lambda: client,
                client_keys=keys,
                agent_path=None,
                known_hosts=([], [], []),
                server_host_key_algs=[alg.decode() for alg in algorithms],
                preferred_auth=["publickey"],
                keepalive_interval=KEEPALIVE_S,
                keepalive_count_max=KEEPALIVES_MISSED,
            )
    raise AssertionError("tenacity returns or raises")


@asynccontextmanager
async def _keys(target: SshTarget) -> AsyncIterator[list[asyncssh.SSHKeyPair]]:
    """The keys to log in with; the agent's stay usable while the block runs."""
    if target.private_key_file is not None:
        yield _from_file(target, target.private_key_file)
        return
    if not os.environ.get("SSH_AUTH_SOCK"):
        raise ssh_refusals.no_agent(target, "no SSH agent runs (SSH_AUTH_SOCK is not set)")
    try:
        agent = await asyncssh.connect_agent()
    except OSError as error:
        raise ssh_refusals.no_agent(target, f"the SSH agent does not answer ({error})") from error
    async with agent:
        keys = list(await agent.get_keys())
        if not keys:
            raise ssh_refusals.no_agent(target, "the SSH agent holds no key")
        yield keys


def _from_file(target: SshTarget, name: str) -> list[asyncssh.SSHKeyPair]:
    try:
        return list(asyncssh.load_keypairs([str(Path(name).expanduser())]))
    except FileNotFoundError as error:
        raise ssh_refusals.key_unusable(target, "there is no such file") from error
    except OSError as error:
        reason = error.strerror or "it may not be read"
        raise ssh_refusals.key_unusable(target, reason) from error
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise ssh_refusals.key_unusable(target, str(error)) from error


@asynccontextmanager
async def _turn(target: SshTarget) -> AsyncIterator[None]:
    """One of the logins that may be under way at once; threads share them, so it polls."""
    slots = _logins[(target.address, target.port)]
    while not slots.acquire(blocking=False):  # noqa: ASYNC110 - each thread has its own loop
        await asyncio.sleep(0.05)
    try:
        yield
    finally:
        slots.release()
