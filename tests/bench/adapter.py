"""What the adapter adds to Triton's own `generate_stream`.

Once before a real tritonserver with the simulated vLLM, where the engine's pace is most of it; once
before an upstream that has its answer ready, where nothing but the adapter takes time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from jinja2 import Template

from tests.bench.clock import Row, say
from tests.bench.load import Target, by_turns, chat, first_token_ms, on_cores, require_wrk
from tests.bench.upstream import TOKENS, upstream
from tests.engines.on_triton import models_on_triton
from tests.gateway.running import DEMO, TEMPLATE, weights, write
from tests.providers.local_sshd import free_port

ROOT = Path(__file__).parents[2]
MODEL = "triton-vllm"
ASKED = chat("", stream=True)
NATIVE: dict[str, Any] = {
    "text_input": Template(TEMPLATE).render(
        bos_token="<s>", add_generation_prompt=True, messages=ASKED["messages"]
    ),
    "stream": True,
    "sampling_parameters": f'{{"max_tokens": {TOKENS}}}',
}
"""What the adapter makes of `ASKED`: another prompt would get an answer of another length."""


@contextmanager
def adapter(engines: dict[str, tuple[str, str]], place: Path) -> Iterator[tuple[str, int]]:
    """Its address and its process; role → the engine's address and the model there."""
    port = free_port()
    about = {
        role: {
            "engine": MODEL,
            "base_url": url,
            "model": model,
            "weights": str(weights(place / role)),
        }
        for role, (url, model) in engines.items()
    }
    write(place / "adapter", about, listen=f"127.0.0.1:{port}")
    words = [sys.executable, "-m", "gateway", "--config", str(place / "adapter")]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url)
        yield url, process.pid
    finally:
        process.kill()
        process.wait(10)


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    give_up = time.monotonic() + 20
    while time.monotonic() < give_up:
        assert process.poll() is None, "the adapter ended"
        try:
            if httpx.get(f"{url}/health", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the adapter does not answer")


def rows() -> list[Row]:
    """Half a minute."""
    require_wrk()
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adapter-")))
        with on_cores(cores[0]):
            ports = stack.enter_context(upstream())
        ready = f"http://127.0.0.1:{ports.native}"
        triton = stack.enter_context(models_on_triton(place / "triton"))
        with on_cores(cores[-1]):
            engines = {"triton": (triton.server.url, MODEL), "ready": (ready, "m")}
            url, pid = stack.enter_context(adapter(engines, place))
        with on_cores(cores[0]):
            return [
                _compared("a real tritonserver", "triton", triton.server.url, MODEL, url, pid, 50),
                _compared("answers that are ready", "ready", ready, "m", url, pid, 200),
                _capacity("ready", url, pid),
            ]


def _compared(
    what: str, role: str, native: str, model: str, url: str, pid: int, requests: int
) -> Row:
    say(f"adapter before {what}")
    path = f"/v2/models/{model}/generate_stream"
    direct = Target("direct", native, model, path=path, body=NATIVE)
    both = [direct, Target("adapter", url, f"{DEMO}/{role}", pids=(pid,))]
    ms = first_token_ms(both, ASKED, requests)
    first = [statistics.median(ms[name]) for name in ("adapter", "direct")]
    took = by_turns(both, ASKED, 1, rounds=3, seconds=2)
    whole = [took[name].p50 for name in ("adapter", "direct")]
    return (
        f"adapter − generate_stream, {TOKENS} tokens: {what}",
        f"first token {first[0]:.2f} − {first[1]:.2f} = {first[0] - first[1]:.2f} ms; "
        f"whole {whole[0]:.1f} − {whole[1]:.1f} = {whole[0] - whole[1]:.1f} ms",
        "",
    )


def _capacity(role: str, url: str, pid: int) -> Row:
    target = Target("adapter", url, f"{DEMO}/{role}", pids=(pid,))
    took = by_turns([target], ASKED, 16, rounds=3, seconds=2)["adapter"]
    tokens = took.per_s * TOKENS
    return (
        "adapter on one core, 16 connections",
        f"{took.per_s:.0f} streams/s = {tokens:,.0f} tokens/s, "
        f"{took.cpu_us / TOKENS:.0f} µs a token",
        "",
    )
