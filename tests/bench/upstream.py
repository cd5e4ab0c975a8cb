"""An upstream that costs next to nothing: nginx with answers that are ready.

One port for each kind of answer, so that nothing in a request need be looked at.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gateway_nginx.running import NGINX
from tests.providers.local_sshd import free_port

MODEL = "served/Own-Name"
FIRST_TOKEN_S = 0.05
"""Of the upstream `slow`: a prompt of some hundred tokens on a small model."""
TOKENS = 64
"""Of a streamed answer."""
ABOUT = {"id": "chatcmpl-1", "created": 1790000000, "model": MODEL}
USAGE = {"prompt_tokens": 180, "completion_tokens": TOKENS, "total_tokens": 180 + TOKENS}


def _whole() -> str:
    message = {"role": "assistant", "content": "The harbour lies still this morning. " * 8}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    answer = {**ABOUT, "object": "chat.completion", "choices": [choice], "usage": USAGE}
    return json.dumps(answer, separators=(",", ":"))


def _event(delta: dict[str, str], finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    chunk = {**ABOUT, "object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n"


def _native(text: str, finish_reason: str | None = None) -> str:
    """As Triton's vLLM backend says it on `generate_stream`."""
    said: dict[str, Any] = {"model_name": "m", "model_version": "1", "text_output": text}
    said |= {"finish_reason": finish_reason or "None"}
    said |= {"num_input_tokens": 180, "num_output_tokens": 1}
    return f"data: {json.dumps(said, separators=(',', ':'))}\n\n"


FIRST = _event({"role": "assistant", "content": "The"})
REST = [_event({"content": " harbour"}) for _ in range(TOKENS - 1)]
END = [_event({}, "stop"), "data: [DONE]\n\n"]
NATIVE = [_native(" harbour", "stop" if i == TOKENS - 1 else None) for i in range(TOKENS)]


@dataclass(frozen=True)
class Upstream:
    """Its ports, by the kind of answer."""

    whole: int
    """A chat completion as one JSON object."""
    stream: int
    """One that is streamed, each token sent by itself and at once."""
    slow: int
    """Streamed, the first token after `FIRST_TOKEN_S`, the others at once."""
    native: int
    """`generate_stream` of Triton's vLLM backend, each token sent by itself and at once."""


def _server(port: int, body: str) -> str:
    return f"""
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location = /health {{ return 200 "ok"; }}
    location / {{ {body} }}
  }}"""


def _streamed(first: str, rest: list[str], wait_s: float = 0) -> str:
    lua = "{" + ",".join(f"[==[{each}]==]" for each in rest) + "}"
    wait = f"ngx.sleep({wait_s})" if wait_s else ""
    return f"""content_by_lua_block {{
      ngx.req.read_body()
      ngx.header["Content-Type"] = "text/event-stream"
      {wait}
      ngx.print([==[{first}]==])
      ngx.flush(true)
      for _, each in ipairs {lua} do ngx.print(each); ngx.flush(true) end
    }}"""


def _conf(ports: Upstream) -> str:
    return f"""\
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
pid nginx.pid;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  keepalive_timeout 600s;
  client_body_buffer_size 64k;
  tcp_nodelay on;
  default_type application/json;
{_server(ports.whole, f"return 200 '{_whole()}';")}
{_server(ports.stream, _streamed(FIRST, REST + END))}
{_server(ports.slow, _streamed(FIRST, REST + END, FIRST_TOKEN_S))}
{_server(ports.native, _streamed(NATIVE[0], NATIVE[1:]))}
}}
"""


@contextmanager
def upstream() -> Iterator[Upstream]:
    """The upstream while it runs."""
    ports = Upstream(*(free_port() for _ in range(4)))
    with tempfile.TemporaryDirectory(prefix="upstream-") as place:
        conf = Path(place) / "nginx.conf"
        conf.write_text(_conf(ports))
        words = [str(NGINX), "-e", f"{place}/error.log", "-p", place, "-c", str(conf)]
        process = subprocess.Popen(words)
        try:
            _wait(process, Path(place) / "nginx.pid")
            yield ports
        finally:
            process.terminate()
            process.wait(10)


def _wait(process: subprocess.Popen[bytes], pid: Path) -> None:
    give_up = time.monotonic() + 10
    while not (pid.exists() and pid.read_text().strip()):
        assert process.poll() is None, "nginx ended"
        assert time.monotonic() < give_up, "nginx does not start"
        time.sleep(0.02)
