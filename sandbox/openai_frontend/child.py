"""The real tritonserver below the frontend: started, asked, and seen out."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from argparse import Namespace
from collections.abc import AsyncIterator
from typing import Any

import httpx

START_SECONDS = 600
"""Loads at start-up come before its HTTP does."""


class TritonError(Exception):
    """Triton's own words and its HTTP status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Child:
    """A tritonserver process and the client to it."""

    def __init__(self, given: Namespace) -> None:
        opened = given.enable_kserve_frontends
        self._http = given.kserve_http_port if opened else _free_port()
        self._metrics = _free_port()
        command = ["tritonserver", f"--model-repository={given.model_repository}"]
        command += [f"--model-control-mode={given.model_control_mode}"]
        command += [f"--load-model={name}" for name in given.load_model]
        command += [f"--http-port={self._http}", f"--metrics-port={self._metrics}"]
        # Those ports are open to all and restricted by nothing, as with the real one.
        command += [f"--http-address={'0.0.0.0' if opened else '127.0.0.1'}"]  # noqa: S104
        command += [f"--grpc-port={given.kserve_grpc_port}"] if opened else ["--allow-grpc=false"]
        command += [f"--log-verbose={given.tritonserver_log_verbose_level}"]
        command += [f"--backend-config=python,shm-region-prefix-name=frontend{self._http}"]
        self.process = subprocess.Popen(command)
        self.client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self._http}",
            timeout=httpx.Timeout(None),
            limits=httpx.Limits(max_connections=None),
        )

    def wait_started(self) -> bool:
        """Whether it got as far as listening."""
        give_up = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < give_up:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", self._http)) == 0:
                    return True
            time.sleep(0.05)
        return False

    def stop(self) -> None:
        """End it, with a bound."""
        self.process.terminate()
        try:
            self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    async def post(self, path: str, body: Any = None) -> Any:
        """
        Raises:
            TritonError: it answers with an error.
        """
        answer = await self.client.post(f"/v2/{path}", json=body or {})
        if answer.status_code != 200:
            raise TritonError(_words(answer.content), answer.status_code)
        return answer.json() if answer.content else None

    async def ready(self) -> bool:
        return (await self.client.get("/v2/health/ready")).status_code == 200

    async def config(self, model: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.client.get(f"/v2/models/{model}/config")).json()
        return found

    async def metrics(self) -> str:
        return (await self.client.get(f"http://127.0.0.1:{self._metrics}/metrics")).text

    async def stream(self, model: str, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Responses as they come.

        Raises:
            TritonError: the model fails, at once or later.
        """
        path = f"/v2/models/{model}/generate_stream"
        async with self.client.stream("POST", path, json=body) as answer:
            if answer.status_code != 200:
                raise TritonError(_words(await answer.aread()), answer.status_code)
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    found = json.loads(line.removeprefix("data: "))
                    if "error" in found:
                        raise TritonError(str(found["error"]), 500)
                    yield found


def _words(content: bytes) -> str:
    text = content.decode(errors="replace").removeprefix("data: ").strip()
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text
