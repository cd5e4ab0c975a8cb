"""Connections to a host: what gets through, and what is refused in which words."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, TypeVar

import asyncssh
import pytest

from components.providers import ssh_connect
from components.providers.ssh import HostProgramError, Session, open_session
from components.providers.ssh_shared import on_host
from components.providers.ssh_target import SshTarget
from components.providers.ssh_tunnel import tunnel
from models.refusal import Refusal
from tests.providers.local_sshd import LocalSshd, free_port

T = TypeVar("T")
BOUND_S = 20.0


async def _nothing(session: Session) -> None:
    await session.run("true", doing="nothing")


def _refused(ssh: dict[str, Any], work: Callable[[Session], Awaitable[Any]] = _nothing) -> Refusal:
    began = time.monotonic()
    with pytest.raises(Refusal) as caught:
        on_host(ssh, work)
    assert time.monotonic() - began < BOUND_S
    return caught.value


def test_a_command_gets_its_input_and_gives_status_and_both_outputs(sshd: LocalSshd) -> None:
    async def work(session: Session) -> tuple[int, str, str]:
        done = await session.run(
            "sh", "-c", "cat; echo its >&2; exit 3", doing="a test", stdin="wörds"
        )
        return done.status, done.stdout, done.stderr

    assert on_host(sshd.ssh, work) == (3, "wörds", "its\n")


def test_a_command_that_ended_before_it_was_sent_its_input_gives_its_status(
    sshd: LocalSshd,
) -> None:
    class EndsAtOnce(asyncssh.SSHServerSession[bytes]):
        def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
            self._channel = chan

        def exec_requested(self, command: str) -> bool:
            return command == "berth-host"

        def session_started(self) -> None:
            # In one turn of the event loop: the client sees the start and the end together.
            self._channel.write_stderr(b"not found\n")
            self._channel.exit(127)

    class Server(asyncssh.SSHServer):
        def session_requested(self) -> EndsAtOnce:
            return EndsAtOnce()

    async def work() -> tuple[int, str]:
        server = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=str(sshd.host_key),
            authorized_client_keys=str(sshd.place / "authorized_keys"),
            encoding=None,
            server_factory=Server,
        )
        ssh = sshd.ssh | {"port": server.get_port()}
        async with server, open_session(ssh) as session:
            done = await session.run("berth-host", doing="a test", stdin="{}")
        return done.status, done.stderr

    assert asyncio.run(work()) == (127, "not found\n")


def test_arguments_are_quoted_for_the_remote_shell(sshd: LocalSshd) -> None:
    async def work(session: Session) -> str:
        return (await session.run("echo", "$HOME; `id`", doing="a test")).stdout

    assert on_host(sshd.ssh, work) == "$HOME; `id`\n"


def test_a_program_runs_on_the_host_with_json_in_and_out(sshd: LocalSshd) -> None:
    program = "from __future__ import annotations\ndef main(p):\n    return {'twice': p['n'] * 2}\n"

    async def work(session: Session) -> dict[str, Any]:
        return await session.run_python(program, {"n": 'ö"\n'}, doing="a test")

    assert on_host(sshd.ssh, work) == {"twice": 'ö"\nö"\n'}


def test_a_payload_is_not_in_the_hosts_process_list(sshd: LocalSshd) -> None:
    program = (
        "import pathlib\ndef main(p):\n    found = []\n"
        "    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):\n"
        "        try:\n            found.append(path.read_text())\n"
        "        except OSError:\n            pass\n"
        "    return {'seen': any(p['secret'] in line for line in found), 'lines': len(found)}\n"
    )

    async def work(session: Session) -> dict[str, Any]:
        return await session.run_python(program, {"secret": "s3cr3t-9f"}, doing="a test")

    answer = on_host(sshd.ssh, work)
    assert answer["lines"] > 1
    assert answer["seen"] is False


def test_a_program_that_raises_is_a_bug_and_not_a_refusal(sshd: LocalSshd) -> None:
    async def work(session: Session) -> dict[str, Any]:
        return await session.run_python("def main(p):\n    return 1 / 0\n", {}, doing="a test")

    with pytest.raises(HostProgramError, match="ZeroDivisionError"):
        on_host(sshd.ssh, work)


def test_a_closed_port_is_refused_with_address_and_port(sshd: LocalSshd) -> None:
    port = free_port()
    refusal = _refused(sshd.ssh | {"port": port})
    assert f"127.0.0.1, port {port}" in refusal.cause
    assert "refused" in refusal.cause.lower()


def test_a_host_that_does_not_answer_is_given_up_within_the_bound(
    sshd: LocalSshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_connect, "CONNECT_TIMEOUT_S", 1.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        refusal = _refused(sshd.ssh | {"port": silent.getsockname()[1]})
    assert "no answer within 1 s" in refusal.cause


def test_an_unknown_name_is_refused(sshd: LocalSshd) -> None:
    assert "nowhere.invalid" in _refused(sshd.ssh | {"address": "nowhere.invalid"}).cause


def test_another_host_key_is_refused_with_both_fingerprints(sshd: LocalSshd) -> None:
    other = sshd.key("other_host_key")
    declared = other.with_suffix(".pub").read_text().strip()
    refusal = _refused(sshd.ssh | {"host_key": declared})
    for line in (declared, sshd.ssh["host_key"]):
        assert asyncssh.import_public_key(line).get_fingerprint() in refusal.cause
    assert "ssh.host_key" in refusal.fix


def test_a_host_key_of_a_type_the_host_lacks_is_refused_with_the_one_it_has(
    sshd: LocalSshd,
) -> None:
    declared = sshd.key("ecdsa", "ecdsa-sha2-nistp256").with_suffix(".pub").read_text()
    refusal = _refused(sshd.ssh | {"host_key": declared})
    assert asyncssh.import_public_key(sshd.ssh["host_key"]).get_fingerprint() in refusal.cause


def test_a_key_the_host_does_not_know_is_refused_with_how_to_install_it(sshd: LocalSshd) -> None:
    key = sshd.key("stranger")
    refusal = _refused(sshd.ssh | {"private_key_file": str(key)})
    assert str(key) in refusal.cause
    assert f"ssh-copy-id -i {key}.pub" in refusal.fix


def test_a_missing_key_file_is_named(sshd: LocalSshd) -> None:
    refusal = _refused(sshd.ssh | {"private_key_file": "keys/none"})
    assert "keys/none" in refusal.cause
    assert "no such file" in refusal.cause


def test_a_key_with_a_passphrase_is_refused_with_a_way_out(sshd: LocalSshd) -> None:
    path = sshd.place / "locked"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "geheim", "-f", str(path)]
    subprocess.run(make, check=True)
    refusal = _refused(sshd.ssh | {"private_key_file": str(path)})
    assert "assphrase" in refusal.cause
    assert "ssh-add" in refusal.fix


def test_without_key_file_and_agent_there_is_nothing_to_log_in_with(
    sshd: LocalSshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    assert "no SSH agent" in _refused(sshd.ssh | {"private_key_file": None}).cause


def test_a_key_path_may_be_relative_to_the_project_or_home(
    sshd: LocalSshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sshd.place)
    on_host(sshd.ssh | {"private_key_file": "client_key"}, _nothing)
    monkeypatch.setenv("HOME", str(sshd.place))
    on_host(sshd.ssh | {"private_key_file": "~/client_key"}, _nothing)


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("echo 'sudo: a password is required' >&2; exit 1", "a password is required"),
        ("echo 'sh: 1: sudo: not found' >&2; exit 127", "`sudo` is not installed"),
    ],
)
def test_a_user_without_sudo_is_refused_with_the_sudoers_line(
    sshd: LocalSshd, script: str, cause: str
) -> None:
    async def work(session: Session) -> None:
        demo = Session(replace(session.target, user="demo"), session._connection, session._slots)
        await demo.run("true", doing="a test", as_root=True)

    sshd.executable("sudo", f"#!/bin/sh\n{script}\n")
    try:
        refusal = _refused(sshd.ssh, work)
    finally:
        (sshd.bin / "sudo").unlink()
    assert cause in refusal.cause
    assert "demo ALL=(ALL) NOPASSWD: ALL" in refusal.fix


def test_a_command_that_hangs_is_given_up_within_its_bound(sshd: LocalSshd) -> None:
    async def work(session: Session) -> None:
        await session.run("sleep", "60", doing="sleeping", timeout_s=0.5)

    assert "sleeping took more than" in _refused(sshd.ssh, work).cause


def test_a_host_that_is_cut_off_is_noticed_by_keepalive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_connect, "KEEPALIVE_S", 0.5)
    sshd = LocalSshd(tmp_path / "sshd")
    stopped: list[int] = []

    async def work(session: Session) -> None:
        sleeping = asyncio.create_task(session.run("sleep", "50", doing="sleeping"))
        await session.run("true", doing="nothing")
        stopped.extend(sshd.freeze_sessions())
        await sleeping

    try:
        refusal = _refused(sshd.ssh, work)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGKILL)
        sshd.stop()
    assert stopped
    assert "broke off while sleeping" in refusal.cause


def _by_itself(ssh: dict[str, object]) -> None:
    async def do() -> None:
        async with open_session(ssh) as session:
            await _nothing(session)

    asyncio.run(do())


def _over_the_shared_one(ssh: dict[str, object]) -> None:
    on_host(ssh, _nothing)


def test_operations_that_begin_at_once_in_a_fresh_process_meet_in_one_loop(sshd: LocalSshd) -> None:
    program = f"""
import threading
from components.providers.ssh_shared import on_host

async def work(session):
    await session.run("true", doing="nothing")
    return id(session._connection)

found = []
threads = [threading.Thread(target=lambda: found.append(on_host({sshd.ssh!r}, work)))
           for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(found), len(set(found)))
"""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", program], text=True, capture_output=True, check=False
        )
        assert done.stdout == "16 1\n", done.stderr


@pytest.mark.parametrize("way", [_by_itself, _over_the_shared_one])
def test_forty_operations_at_once_all_get_in(
    sshd: LocalSshd, way: Callable[[dict[str, object]], None]
) -> None:
    failures: list[Exception] = []

    def one() -> None:
        try:
            way(sshd.ssh)
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=one) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.headers["X-Test"].encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        del format, args


@contextmanager
def _web() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), _Hello)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_loopback_port_of_the_host_is_reached_by_this_user_only(sshd: LocalSshd) -> None:
    with _web() as port:

        async def work(session: Session) -> tuple[str, int, bool]:
            assert await session.listens(port)
            async with tunnel(session, port, {"X-Test": "through"}) as http:
                answer = (await http.get("/")).text
                pool = http._transport._pool  # type: ignore[attr-defined]
                place = Path(pool._uds).parent
                mode = stat.S_IMODE(place.stat().st_mode)
            return answer, mode, place.exists()

        assert on_host(sshd.ssh, work) == ("through", 0o700, False)


def test_a_port_nobody_listens_on_is_told_apart(sshd: LocalSshd) -> None:
    async def work(session: Session) -> bool:
        return await session.listens(free_port())

    assert on_host(sshd.ssh, work) is False


def test_an_sshd_that_forbids_forwarding_is_refused_with_the_setting(tmp_path: Path) -> None:
    sshd = LocalSshd(tmp_path / "sshd", settings=("AllowTcpForwarding no",))

    async def work(session: Session) -> bool:
        return await session.listens(22)

    try:
        assert "AllowTcpForwarding" in _refused(sshd.ssh, work).fix
    finally:
        sshd.stop()


def test_an_ssh_dict_without_the_optional_keys_has_their_defaults() -> None:
    target = SshTarget.of({"address": "h", "host_key": "ssh-ed25519 AAAA"})
    assert (target.port, target.user, target.private_key_file) == (22, "root", None)


def test_a_connection_that_was_cut_is_made_anew_for_the_next_operation(tmp_path: Path) -> None:
    sshd = LocalSshd(tmp_path / "sshd")

    async def cut(session: Session) -> None:
        session._connection.abort()

    try:
        on_host(sshd.ssh, cut)
        on_host(sshd.ssh, _nothing)
    finally:
        sshd.stop()


def test_operations_of_one_process_share_a_login(sshd: LocalSshd) -> None:
    seen: list[object] = []

    async def remember(session: Session) -> None:
        seen.append(session._connection)

    on_host(sshd.ssh, remember)
    on_host(sshd.ssh, remember)
    assert seen[0] is seen[1]
