"""The launcher, as the container runs it, with a small server in Triton's place."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LAUNCHER = Path(__file__).parents[2] / "host" / "serve_triton.py"
KEY = "k3y-that-nobody-may-see"
SERVER = """
import pathlib, signal, socket, sys, time
port = int([a for a in sys.argv if a.startswith("--http-port=")][0].split("=")[1])
given = [a for a in sys.argv if a.startswith("--http-restricted-api=")][0]
pathlib.Path(sys.argv[1]).write_text(given)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
listener = socket.create_server(("127.0.0.1", port))
while True:
    listener.accept()[0].close()
"""

Launch = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def launch(tmp_path: Path, port: int) -> Iterator[Launch]:
    """Starts the launcher with the server, or with another command."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str, key: str = KEY) -> subprocess.Popen[bytes]:
        (tmp_path / "key").write_text(key)
        server = [sys.executable, "-c", SERVER, str(tmp_path / "given"), f"--http-port={port}"]
        words = [sys.executable, str(LAUNCHER), f"--control-key-file={tmp_path / 'key'}",
                 "--control-header=X-Control", "--control-apis=model-repository,trace",
                 "--", *(command or server)]  # fmt: skip
        started.append(subprocess.Popen(words, stderr=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def child_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    until(lambda: bool(children.read_text().split()))
    return int(children.read_text().split()[0])


def test_the_server_gets_the_key_and_its_command_line_shows_none(
    launch: Launch, tmp_path: Path
) -> None:
    process = launch()
    server = child_of(process.pid)
    until((tmp_path / "given").exists)
    until(lambda: "X-Control=" in (tmp_path / "given").read_text())
    shown = Path(f"/proc/{server}/cmdline")
    until(lambda: KEY.encode() not in shown.read_bytes())
    assert b"--http-restricted-api=model-repository,trace:X-Control=***" in shown.read_bytes()
    assert (tmp_path / "given").read_text().endswith(f"X-Control={KEY}")
    assert KEY.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes()


def test_a_stop_is_handed_on_and_the_servers_status_comes_back(
    launch: Launch, tmp_path: Path
) -> None:
    process = launch()
    until((tmp_path / "given").exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 7


def test_a_killed_server_ends_the_launcher_with_the_signals_status(
    launch: Launch, tmp_path: Path
) -> None:
    process = launch()
    until((tmp_path / "given").exists)
    os.kill(child_of(process.pid), signal.SIGKILL)
    assert process.wait(10) == 128 + signal.SIGKILL


def test_a_server_does_not_outlive_its_launcher(launch: Launch, tmp_path: Path) -> None:
    process = launch()
    until((tmp_path / "given").exists)
    server = child_of(process.pid)
    process.kill()
    process.wait()
    until(lambda: not Path(f"/proc/{server}").exists() or "Z" in state_of(server))


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_a_server_that_does_not_start_ends_the_launcher(launch: Launch) -> None:
    assert launch(sys.executable, "-c", "raise SystemExit(3)").wait(10) == 3


def test_without_a_key_nothing_is_started(launch: Launch, tmp_path: Path) -> None:
    process = launch(key="\n")
    assert process.wait(10) == 78
    assert process.stderr is not None
    assert b"the control API would be open" in process.stderr.read()
    assert not (tmp_path / "given").exists()
