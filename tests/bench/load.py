"""Load on one address, and what it took: wrk for whole answers, one socket for first tokens.

Both are closed loops: a connection asks again when it has its answer, so a slow server is asked
less often. wrk fills in what it would have asked during a stall, for every server alike.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

SCRIPT = Path(__file__).with_name("load.lua")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Target:
    """What is asked; `model` is its name there."""

    name: str
    url: str
    model: str
    key: str = "none"
    path: str = "/v1/chat/completions"
    pids: tuple[int, ...] = ()
    """Processes whose processor time counts as its own."""
    times: int = 1
    """Its runs are so many times as long, because it answers few a second."""
    body: dict[str, Any] | None = None
    """What it is asked in the place of what the others are."""


@dataclass(frozen=True)
class Figures:
    """One run, or the medians of several. Times in milliseconds."""

    p50: float
    p99: float
    per_s: float
    cpu_us: float
    """Processor time of the target's own processes, in µs a request."""
    spread: float = 0
    """Of p50 over the runs: (largest − smallest) ÷ median."""


@contextmanager
def on_cores(*cores: int) -> Iterator[None]:
    """Programs that are started in here stay on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cores) & before or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def require_wrk() -> None:
    """wrk is there, or the person learns how it gets there."""
    if not shutil.which("wrk"):
        sys.exit("missing: wrk, which makes the load. Install it: apt-get install wrk")


def chat(model: str, *, stream: bool) -> dict[str, Any]:
    """A request of about a kilobyte."""
    told = "You are the night auditor of a small harbour, and answer in two sentences. " * 8
    asked = "Which of the ships that lie here tonight may leave before the tide turns? " * 4
    messages = [{"role": "system", "content": told}, {"role": "user", "content": asked}]
    return {"model": model, "messages": messages, "max_tokens": 64, "stream": stream}


def wrk(target: Target, body: dict[str, Any], connections: int, seconds: int) -> Figures:
    """One run; wrk stays on the cores that `on_cores` says."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(_for(target, body), file)
        file.flush()
        words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s"]
        words += [str(SCRIPT), target.url + target.path, "--", file.name, target.key]
        before = _cpu_s(target.pids)
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        used = _cpu_s(target.pids) - before
    told = json.loads(said.strip().splitlines()[-1])
    assert told["failed"] == 0, f"{target.name}: {told}"
    assert told["requests"], f"{target.name} answered nothing"
    return Figures(
        told["p50_us"] / 1000,
        told["p99_us"] / 1000,
        told["requests"] / told["seconds"],
        used / told["requests"] * 1e6,
    )


def medians(runs: Iterable[Figures]) -> Figures:
    """Of each figure by itself."""
    runs = list(runs)

    def of(name: str) -> float:
        return float(statistics.median(getattr(run, name) for run in runs))

    p50s = [run.p50 for run in runs]
    spread = (max(p50s) - min(p50s)) / of("p50")
    return Figures(of("p50"), of("p99"), of("per_s"), of("cpu_us"), spread)


def by_turns(
    targets: list[Target], body: dict[str, Any], connections: int, *, rounds: int, seconds: int
) -> dict[str, Figures]:
    """Medians by target; by turns, so that whatever else the machine does meets all of them."""
    runs: dict[str, list[Figures]] = {each.name: [] for each in targets}
    for each in targets:
        _once(each, body)
        wrk(
            each, body, connections, each.times
        )  # Warm: connections, compiled Lua, Python's caches.
    for _ in range(rounds):
        for each in targets:
            runs[each.name].append(wrk(each, body, connections, seconds * each.times))
    return {name: medians(found) for name, found in runs.items()}


def _once(target: Target, body: dict[str, Any]) -> None:
    """Some servers import what they need with the first request, for seconds."""
    answer = httpx.post(
        target.url + target.path,
        json=_for(target, body),
        headers={"Authorization": f"Bearer {target.key}"},
        timeout=60,
        verify=False,  # noqa: S501 - made by this run
        trust_env=False,
    )
    assert answer.status_code == 200, f"{target.name}: {answer.text}"


def _for(target: Target, body: dict[str, Any]) -> dict[str, Any]:
    return target.body or body | {"model": target.model}


def first_token_ms(
    targets: list[Target], body: dict[str, Any], requests: int
) -> dict[str, list[float]]:
    """Milliseconds from sending a request to the first event, one at a time and by turns."""
    asking = {each.name: _Asking(each, body) for each in targets}
    found: dict[str, list[float]] = {each.name: [] for each in targets}
    for number in range(requests + 10):
        for name, each in asking.items():
            took = each.first_ms()
            if number >= 10:
                found[name].append(took)
    for each in asking.values():
        each.close()
    return found


class _Asking:
    """One connection, kept where the server keeps it: a client library would take most of the
    time. Making it anew is part of what is measured, as it is of what a client waits for."""

    def __init__(self, target: Target, body: dict[str, Any]) -> None:
        self._scheme, _, self._at = target.url.partition("://")
        self._socket: socket.socket | None = None
        content = json.dumps(_for(target, body)).encode()
        head = f"POST {target.path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {target.key}\r\nContent-Length: {len(content)}\r\n\r\n"
        self._request = head.encode() + content
        self._trusting = ssl.create_default_context()
        self._trusting.check_hostname, self._trusting.verify_mode = False, ssl.CERT_NONE

    def first_ms(self) -> float:
        """Ask once; the whole answer is read, so that the connection can be used again."""
        before = time.perf_counter()
        if self._socket is None:
            self._socket = self._connected()
        self._socket.sendall(self._request)
        answer, at = b"", None
        while not answer.endswith(b"0\r\n\r\n"):
            piece = self._socket.recv(65536)
            assert piece, answer[-200:]
            answer += piece
            assert b"HTTP/1.1 200".startswith(answer[:12]), answer[:600]
            if at is None and b"data:" in answer:
                at = time.perf_counter()
        assert at is not None, answer[:300]
        if b"\r\nconnection: close\r\n" in answer.partition(b"\r\n\r\n")[0].lower() + b"\r\n":
            self.close()
        return (at - before) * 1000

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _connected(self) -> socket.socket:
        host, _, port = self._at.rpartition(":")
        plain = socket.create_connection((host, int(port)), 30)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._trusting.wrap_socket(plain) if self._scheme == "https" else plain


def _cpu_s(pids: Iterable[int]) -> float:
    """User and system time of processes, in seconds."""
    ticks = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # A worker that was exchanged.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks * _TICK_S
