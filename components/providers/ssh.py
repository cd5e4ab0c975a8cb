"""One SSH connection to a host: run a command, run a Python program as root, reach a port.

Host keys are always checked against the declared one; `~/.ssh/config` and `known_hosts` are not
read, so that a deployment does not depend on whose machine it runs from.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncssh
import tenacity

from components.providers import ssh_refusals
from components.providers.ssh_connect import connect
from components.providers.ssh_target import SshTarget

__all__ = ["Completed", "HostProgramError", "Session", "command_slots", "open_session"]

COMMAND_TIMEOUT_S = 60.0
COMMANDS_AT_ONCE = 8

T = TypeVar("T")


@dataclass(frozen=True)
class Completed:
    """How a command on the host ended."""

    status: int
    stdout: str
    stderr: str


def command_slots() -> asyncio.Semaphore:
    """How many commands may run over one connection at once: sshd's MaxSessions is 10."""
    return asyncio.Semaphore(COMMANDS_AT_ONCE)


class HostProgramError(Exception):
    """A program shipped to the host ended with a traceback: a bug, not the user's mistake."""


class Session:
    """An open connection to a host."""

    def __init__(
        self,
        target: SshTarget,
        connection: asyncssh.SSHClientConnection,
        slots: asyncio.Semaphore,
    ) -> None:
        self.target = target
        self._connection = connection
        self._slots = slots

    async def run(
        self,
        *argv: str,
        doing: str,
        stdin: str = "",
        as_root: bool = False,
        timeout_s: float = COMMAND_TIMEOUT_S,
    ) -> Completed:
        """Run a command; secrets go in by `stdin`, never by `argv`.

        Args:
            argv: the command's words, quoted here for the remote shell.
            doing: what it does, for refusals ("reading the control key").
            as_root: through `sudo -n`, unless the login user is root already.
            timeout_s: bound in seconds.

        Raises:
            Refusal: it took too long, the connection broke, or sudo does not work.
        """
        words = ("sudo", "-n", "--", *argv) if as_root and self.target.user != "root" else argv
        try:
            async with asyncio.timeout(timeout_s), self._slots:
                done = await self._started(shlex.join(words), stdin)
        except TimeoutError as error:
            raise ssh_refusals.took_too_long(self.target, doing, timeout_s) from error
        except (OSError, asyncssh.Error) as error:
            raise ssh_refusals.connection_lost(self.target, doing) from error
        if done.exit_status is None:
            raise ssh_refusals.connection_lost(self.target, doing)
        completed = Completed(done.exit_status, _text(done.stdout), _text(done.stderr))
        if words is not argv:
            self._see_that_sudo_ran(completed)
        return completed

    async def _started(self, command: str, stdin: str) -> asyncssh.SSHCompletedProcess:
        # sshd counts a session until it has reaped its process, so one too many may be asked for;
        # a session that was not opened has run nothing, and may be asked for again.
        retry = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(asyncssh.ChannelOpenError),
            wait=tenacity.wait_random_exponential(multiplier=0.05, max=1),
            stop=tenacity.stop_after_attempt(6),
            reraise=True,
        )
        async for attempt in retry:
            with attempt:
                process = await self._connection.create_process(command, encoding=None)
                # A command may end before it has read, or been sent, anything: what it said and
                # left with is then the answer, not that nobody listened.
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(stdin.encode())
                process.stdin.write_eof()
                return await process.wait()
        raise AssertionError("tenacity returns or raises")

    def _see_that_sudo_ran(self, completed: Completed) -> None:
        if completed.status == 127 and "sudo" in completed.stderr:
            raise ssh_refusals.sudo_missing(self.target, "`sudo` is not installed")
        # sudo's own failures leave with 1 and say "sudo: …"; the command was not started then.
        said = completed.stderr.splitlines()[0] if completed.stderr else ""
        if completed.status == 1 and said.startswith("sudo:") and "not found" not in said:
            raise ssh_refusals.sudo_missing(self.target, said.removeprefix("sudo: "))

    async def run_python(
        self,
        program: str,
        payload: Mapping[str, Any],
        *,
        doing: str,
        timeout_s: float = COMMAND_TIMEOUT_S,
    ) -> dict[str, Any]:
        """Run a program's `main(payload) -> dict` as root on the host; JSON both ways.

        Program and payload both go in by standard input: nothing of them is seen in the host's
        process list, and nothing is left behind there.

        Args:
            program: source of a module for Python ≥ 3.9 with the standard library only.
            payload: what `main` is called with.

        Raises:
            Refusal: no python3, no sudo, too slow, or the connection broke.
            HostProgramError: the program raised.
        """
        bootstrap = (
            "import json\n"
            f"_space = {{'__name__': 'berth_host'}}\n"
            f"exec(compile({program!r}, '<berth>', 'exec', 0, True), _space)\n"
            f"print(json.dumps(_space['main'](json.loads({json.dumps(payload)!r}))))\n"
        )
        done = await self.run(
            "python3",
            "-I",
            "-",
            doing=doing,
            stdin=bootstrap,
            as_root=True,
            timeout_s=timeout_s,
        )
        if done.status != 0 and "not found" in done.stderr and "python3" in done.stderr:
            raise ssh_refusals.python_missing(self.target)
        if done.status != 0:
            raise HostProgramError(f"{doing} ended with {done.status}: {done.stderr[-2000:]}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    async def listens(self, port: int) -> bool:
        """Whether something accepts connections on a port of the host's loopback.

        Raises:
            Refusal: sshd forbids forwarding, or the connection broke.
        """
        try:
            async with asyncio.timeout(10):
                _, writer = await self._connection.open_connection("127.0.0.1", port)
        except asyncssh.ChannelOpenError as error:
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                raise ssh_refusals.forwarding_forbidden(self.target, error.reason) from error
            if error.code != asyncssh.OPEN_CONNECT_FAILED:
                raise ssh_refusals.connection_lost(self.target, f"asking port {port}") from error
            return False
        except (OSError, asyncssh.Error, TimeoutError) as error:
            raise ssh_refusals.connection_lost(self.target, f"asking port {port}") from error
        writer.close()
        return True

    @property
    def broken(self) -> bool:
        """Whether the connection is gone."""
        return self._connection.is_closed()

    async def forward(self, path: str, port: int) -> asyncssh.SSHListener:
        """Forward a UNIX socket here to a port of the host's loopback."""
        return await self._connection.forward_local_path_to_port(path, "127.0.0.1", port)


@asynccontextmanager
async def open_session(ssh: Mapping[str, Any] | SshTarget) -> AsyncIterator[Session]:
    """A connection to the host, closed at the end of the block.

    Args:
        ssh: `address`, `port`, `user`, `private_key_file` or None, `host_key`.

    Raises:
        Refusal: the host cannot be reached, or does not let us in, or is another one.
    """
    target = ssh if isinstance(ssh, SshTarget) else SshTarget.of(ssh)
    connection = await connect(target)
    try:
        yield Session(target, connection, command_slots())
    finally:
        connection.abort()
        await connection.wait_closed()


def _text(output: object) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else str(output or "")
