"""Ways in which somebody with a key may ask for what only operators do: thousands of spellings.

The list is the same in every run: its random choices have a fixed seed.
"""

from __future__ import annotations

import random
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.e2e.clients import Reached

TRITON = [
    "/v2/repository/index", "/v2/repository/models/{entry}/load",
    "/v2/repository/models/{entry}/unload", "/v2/logging", "/v2/trace/setting",
    "/v2/models/{entry}/trace/setting", "/v2/systemsharedmemory/status",
    "/v2/systemsharedmemory/region/a/register", "/v2/systemsharedmemory/unregister",
    "/v2/cudasharedmemory/status", "/v2/models/{entry}/config", "/v2/models/{entry}/stats",
    "/v2/models/stats", "/v2/models/{entry}/versions/1/infer", "/v2/models/{entry}/generate", "/v2",
]  # fmt: skip
VLLM = [
    "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/sleep", "/wake_up", "/reset_prefix_cache",
    "/collective_rpc", "/server_info", "/tokenize", "/load", "/invocations", "/version", "/metrics",
    "/health", "/ping",
]  # fmt: skip
ADAPTER = ["/health/{demo}/{role}", "/v1/models/{demo}/{role}/../../../metrics"]
STARTS = ["", "", "", "/roles/{role}", "/roles/{role}/v2/models/{role}", "/v1/models/{role}",
          "/v1/models/{role}/..", "/roles/{role}/v2/models/{role}/../..", "/roles/{role}/..",
          "/v1/chat/completions/../..", "/roles/{role}/v2/health/ready/../../..", "/v1", "//",
          "/.", "/%2e%2e"]  # fmt: skip
ENDS = ["", "", "", "/", "//", "/.", "/..", ";", ";x=y", "?", "?a=b", "#", ".", "%00", "%20", "%0a",
        "%0d%0aX:%20y", "%09", "\\", "%5c", "..;/", "%3f", "%23", "\x7f", "é", ".json"]  # fmt: skip
METHODS = [*["GET", "POST"] * 6, "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT",
           "PROPFIND", "get", "PoSt"]  # fmt: skip
HOSTS = [*["gateway", "127.0.0.1:{port}", "localhost:{port}", "localhost", "127.0.0.1"] * 3, "",
         "a\r\nHost: localhost"]  # fmt: skip
HEADERS = [
    "", "", "X-Berth-Control: {control}",
    "X-Berth-Control: {control}\r\nX-Forwarded-For: 127.0.0.1",
    "X-Original-URL: {path}", "X-Rewrite-URL: {path}", "X-Forwarded-Prefix: {path}",
    "X-Forwarded-Host: localhost:{port}", "Forwarded: for=127.0.0.1;host=localhost",
    "X-Accel-Redirect: {path}", "X-HTTP-Method-Override: POST", "X-Real-IP: 127.0.0.1",
    "Connection: close, upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    "Connection: close, X-Berth-Control\r\nX-Berth-Control: {control}", "Expect: 100-continue",
    "Inference-Header-Content-Length: 2", "Content-Type: application/octet-stream",
    "Transfer-Encoding: chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding : chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Content-Length: 0",
]  # fmt: skip
VERSIONS = [*["HTTP/1.1"] * 9, "HTTP/1.0", "HTTP/2.0", "HTTP/1.1 "]


@dataclass(frozen=True)
class Target:
    """What somebody with a demo's key wants more of."""

    demo: str
    role: str
    entry: str
    port: int
    """Of its engine, on the host's loopback."""
    control: str
    """The engine's own control key, as if it had become known."""

    def __call__(self, text: str, path: str = "") -> str:
        """The text with these names in it."""
        names = {"demo": self.demo, "role": self.role, "entry": self.entry, "path": path}
        return text.format(**names, port=self.port, control=self.control)


def attempts(target: Target, key: str, number: int) -> Iterator[bytes]:
    """As many requests, whole and as bytes; none is one that clients may send."""
    chosen = random.Random(f"{target.demo} {number}")  # noqa: S311 - the same in every run
    for count in range(number):
        wanted = target(chosen.choice(TRITON + VLLM + ADAPTER))
        path = target(chosen.choice(STARTS)) + _spelt(chosen, wanted) + chosen.choice(ENDS)
        if chosen.random() < 0.15:
            authority = target(chosen.choice(["127.0.0.1:{port}", "localhost", "gateway", ""]))
            path = chosen.choice(["http://", "https://", "//", "HTTP://x@"]) + authority + path
        header = target(chosen.choice(HEADERS), wanted)
        body = b'{"model": "%s", "log_verbose_level": 0}' % target.role.encode()
        lines = [
            f"{chosen.choice(METHODS)} {path} {chosen.choice(VERSIONS)}",
            f"Host: {target(chosen.choice(HOSTS))}",
            f"Authorization: Bearer {key}",
            f"X-Request-Id: fuzz-{target.demo}-{count}",
            *([header] if header else []),
            *([] if header.startswith("Content-Length") else [f"Content-Length: {len(body)}"]),
            *([] if header.startswith("Connection") else ["Connection: close"]),
        ]
        yield "\r\n".join([*lines, "", ""]).encode() + body


def smuggled(target: Target, key: str) -> Iterator[bytes]:
    """Requests that clients may send, with another hidden in them."""
    authorization = f"Host: x\r\nAuthorization: Bearer {key}\r\nX-Request-Id: fuzz-smuggled\r\n"
    path = target("/roles/{role}/v2/models/{role}/generate")
    hidden = target(
        "POST /v2/repository/models/{entry}/unload HTTP/1.1\r\nHost: localhost\r\n"
        "X-Berth-Control: {control}\r\nContent-Length: 2\r\n\r\n{{}}"
    )
    size = f"{len(hidden):x}"
    for length, body in (
        ("Content-Length: 0", hidden),
        ("Content-Length: 1", f"x{hidden}"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", f"0\r\n\r\n{hidden}"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", f"0\r\n\r\n{hidden}"),
        (f"Content-Length: {len(hidden)}\r\nContent-Length: 0", hidden),
        (f"Content-Length: 0\r\nContent-Length: {len(hidden)}", hidden),
        ("Content-Length: +0", hidden),
        ("Content-Length: 0x0", hidden),
        ("Content-Length: 0,0", hidden),
        ("Transfer-Encoding: chunked", f"0\r\n\r\n{hidden}"),
        ("Transfer-Encoding: chunked", f"{size}\r\n{hidden}\r\n0\r\n\r\n{hidden}"),
        ("Transfer-Encoding: chunked", f"0;a=b\r\nX: y\r\n\r\n{hidden}"),
        ("Transfer-Encoding: chunked", f"0\n\n{hidden}"),
        ("Transfer-Encoding: chunked", f"ffffffffffffffff1\r\n{hidden}"),
        ("Transfer-Encoding: \x0bchunked", f"0\r\n\r\n{hidden}"),
        ("Transfer-Encoding: identity", hidden),
        ("Transfer-Encoding:\r\n chunked", f"0\r\n\r\n{hidden}"),
        (f"X: y\rContent-Length: {len(hidden)}", hidden),
        (f"Content-Length: {len(hidden)}", hidden),
    ):
        yield f"POST {path} HTTP/1.1\r\n{authorization}{length}\r\n\r\n{body}".encode()


class Wire:
    """The gateway, to which bytes go as they are."""

    def __init__(self, reached: Reached) -> None:
        there = urlsplit(reached.url)
        self._host, self._port = str(there.hostname), int(there.port or 443)
        self._trusted: ssl.SSLContext = reached.trusted

    def statuses(self, request: bytes, within_s: float = 3) -> Sequence[int]:
        """Statuses of all that comes back."""
        raw = socket.create_connection((self._host, self._port), 20)
        answer = b""
        with self._trusted.wrap_socket(raw, server_hostname=self._host) as connection:
            connection.settimeout(within_s)
            try:
                connection.sendall(request)
                while piece := connection.recv(65536):
                    answer += piece
            except OSError:  # It waits for more, or has closed the connection at once.
                pass
        return [int(each) for each in re.findall(rb"^HTTP/\d\.\d (\d{3})", answer, re.MULTILINE)]


def _spelt(chosen: random.Random, path: str) -> str:
    """A path, some or all of its characters spelt in another way."""
    way = chosen.randrange(12)
    if way == 0:
        return "".join(f"%{ord(each):02X}" for each in path)
    if way == 1:
        return "".join(f"%25{ord(each):02x}" if each in "/._" else each for each in path)
    if way == 2:
        return path.replace("/", chosen.choice(["//", "/./", "///", "/x/../", "\\", "%2f", "%5c"]))
    if way == 3:
        return path.upper()
    if way == 4:
        return path.replace("/", chosen.choice(["/%2e/", "/;/", "/%2e%2e/%2e/", "/.;/", "%c0%af"]))
    if way < 9:
        return "".join(_sign(chosen, each) for each in path)
    return path


def _sign(chosen: random.Random, character: str) -> str:
    way = chosen.randrange(24)
    spelt = {
        0: f"%{ord(character):02x}", 1: f"%25{ord(character):02x}", 2: character * 2,
        3: character.swapcase(), 4: f"%u00{ord(character):02x}", 5: f"{character}/./",
        6: f"{character}%00",
    }  # fmt: skip
    return spelt.get(way, character)
