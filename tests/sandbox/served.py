"""A stand-in server as a process of the test, on simulated GPUs under a temporary directory."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from sandbox.simgpu.devices import define, present, simulated_l4
from sandbox.simgpu.holders import Holder, holders
from sandbox.simgpu.memory import used_mib
from sandbox.weights.catalog import custom
from sandbox.weights.directory import write_model

ROOT = Path(__file__).parents[2]
START_SECONDS = 30
_TLS = ssl.create_default_context()
"""Never used: a client that may not share one reads all certificates anew, for 50 ms."""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def until(what: Callable[[], Any], seconds: float = 10) -> Any:
    """The first true answer of `what`, within a bound."""
    give_up = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < give_up, "it did not come about"
        time.sleep(0.02)
    return found


@dataclass
class Gpus:
    """Simulated GPUs under `root`, and a directory of small models beside them."""

    root: Path
    weights: Path

    @property
    def environment(self) -> dict[str, str]:
        keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return {**keep, "SIMGPU_ROOT": str(self.root), "PYTHONPATH": str(ROOT)}

    def used_mib(self) -> list[int]:
        return [used_mib(self.root, gpu) for gpu in present(self.root)]

    def holders(self) -> list[Holder]:
        return [holder for gpu in present(self.root) for holder in holders(self.root, gpu)]


def gpus_and_models(place: Path, count: int = 2) -> Gpus:
    """`count` L4s; the models `tiny` and `small`, and `large`, which fits on no L4."""
    found = Gpus(place / "gpus", place / "weights")
    define(found.root, [simulated_l4(index) for index in range(count)])
    for spec in ("tiny:2:256", "small:8:1024", "large:48:6144"):
        write_model(found.weights, custom(spec))
    return found


@dataclass
class Server:
    """One process, its log and its port."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=20, verify=_TLS)

    def get(self, path: str, **more: Any) -> httpx.Response:
        with self.http() as client:
            return client.get(path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        with self.http() as client:
            return client.post(path, json=body, **more)

    def events(self, path: str, body: Mapping[str, Any]) -> list[Any]:
        """A stream's `data:` lines, read as JSON where they are."""
        with self.http() as client, client.stream("POST", path, json=body) as answer:
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = [line for line in answer.iter_lines() if line]
        assert all(line.startswith("data: ") for line in lines)
        return [_read(line.removeprefix("data: ")) for line in lines]

    def abandon(
        self, path: str, body: Mapping[str, Any], meanwhile: Callable[[], object] = bool
    ) -> None:
        """Ask, hang up after a stream's first line (or half a second of nothing)."""
        with self.http() as client, suppress(httpx.ReadTimeout):
            client.timeout = httpx.Timeout(0.5)
            with client.stream("POST", path, json=body) as answer:
                lines = answer.iter_lines()
                next(lines)
                meanwhile()

    def hears(self) -> bool:
        """Whether somebody listens on its port."""
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def wait(self, seconds: float = 15) -> int:
        """Its exit status."""
        return self.process.wait(timeout=seconds)

    def metric(self, name: str, path: str = "/metrics") -> float:
        """The sum of a metric's series."""
        lines = self.get(path).text.splitlines()
        found = [line for line in lines if line.startswith((f"{name}{{", f"{name} "))]
        assert found, f"no metric {name}"
        return sum(float(line.split()[-1]) for line in found)


def _read(text: str) -> Any:
    return text if text == "[DONE]" else json.loads(text)


def served(
    module: str, words: list[str], gpus: Gpus, place: Path, port: int, **environment: str
) -> AbstractContextManager[Server]:
    """`python -m module words…`, not yet waited for; gone at the end with all its children."""
    return running([sys.executable, "-m", module, *words], gpus, place, port, **environment)


@contextmanager
def running(
    command: list[str], gpus: Gpus, place: Path, port: int, **environment: str
) -> Iterator[Server]:
    """Any program that serves on `port`, as `served`."""
    log = place / f"{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**gpus.environment, **environment},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield Server(process, log, port)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_until_heard(server: Server) -> Server:
    def heard_or_ended() -> bool:
        assert server.process.poll() is None, server.said()
        return server.hears()

    until(heard_or_ended, START_SECONDS)
    return server
