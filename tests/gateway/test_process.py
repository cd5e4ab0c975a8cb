"""The service as the process that its unit starts."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from gateway.__main__ import _listener
from tests.engines.asking import fake
from tests.engines.serving import serving, until
from tests.gateway.running import write

ROOT = Path(__file__).parents[2]
CHAT: dict[str, Any] = {
    "model": "shop/architect",
    "messages": [{"role": "user", "content": "hi"}],
    "stream": True,
}


@contextmanager
def started(config: Path) -> Iterator[subprocess.Popen[str]]:
    """`python -m gateway`, and its end."""
    command = [sys.executable, "-m", "gateway", "--config", str(config)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def over(path: Path) -> httpx.AsyncClient:
    """A client of a Unix socket."""
    transport = httpx.AsyncHTTPTransport(uds=str(path))
    return httpx.AsyncClient(transport=transport, base_url="http://adapter", timeout=10)


def test_it_serves_a_unix_socket_rereads_on_sighup_and_lets_streams_end(tmp_path: Path) -> None:
    server = fake("vllm", endless=True)
    config, path = tmp_path / "adapter", tmp_path / "adapter.sock"

    async def do() -> None:
        async with serving(server.app) as base:
            route = {"engine": "vllm", "base_url": base, "model": "m"}
            write(config, {"architect": route}, listen=f"unix:{path}")
            with started(config) as process:
                await until(path.is_socket, 20)
                async with over(path) as http:
                    await talk(http, process, route)

    async def talk(
        http: httpx.AsyncClient, process: subprocess.Popen[str], route: dict[str, str]
    ) -> None:
        await until(lambda: alive(http), 20)
        assert oct(path.stat().st_mode)[-3:] == "660"
        async with http.stream("POST", "/v1/chat/completions", json=CHAT) as answer:
            lines = answer.aiter_lines()
            assert (await anext(lines)).startswith("data: ")
            write(config, {"worker": route}, listen=f"unix:{path}")
            process.send_signal(signal.SIGHUP)
            models = (await http.get("/v1/models")).json()
            assert [row["id"] for row in models["data"]] == ["shop/worker"]
            process.send_signal(signal.SIGTERM)
            server.endless = False
            rest = [line async for line in lines]
            assert "data: [DONE]" in rest
        assert await asyncio.to_thread(process.wait, 20) in (0, -signal.SIGTERM)

    asyncio.run(do())


async def alive(http: httpx.AsyncClient) -> bool:
    """Whether it answers yet."""
    try:
        return (await http.get("/health")).status_code == 200
    except httpx.TransportError:
        return False


def test_a_listener_is_one_that_asyncio_lets_send_at_once() -> None:
    listener = _listener("127.0.0.1:0")
    assert listener.proto == socket.IPPROTO_TCP
    listener.close()


def test_a_wrong_configuration_ends_it_with_a_line_and_no_traceback(tmp_path: Path) -> None:
    config = tmp_path / "adapter"
    write(config, {}, listen="0.0.0.0:1")
    with started(config) as process:
        assert process.wait(20) == 2
        assert process.stderr
        said = process.stderr.read()
        assert "loopback" in said
        assert "Traceback" not in said


def test_an_address_in_use_is_told(tmp_path: Path) -> None:
    async def do() -> None:
        async with serving(fake("vllm").app) as base:
            config = tmp_path / "adapter"
            write(config, {}, listen=base.removeprefix("http://"))
            with started(config) as process:
                assert await asyncio.to_thread(process.wait, 20) == 2
                assert process.stderr
                assert "Address already in use" in process.stderr.read()

    asyncio.run(do())
