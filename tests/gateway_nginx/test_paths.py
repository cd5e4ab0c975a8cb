"""No spelling of a path reaches anything of an engine but what clients may ask of it."""

from __future__ import annotations

import re
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway_nginx.conftest import DESK
from tests.gateway_nginx.engine import Engine
from tests.gateway_nginx.running import RunningGateway

ALLOWED = re.compile(
    r"/v1/(chat/completions|completions|stream)"
    r"|/v2/models/demo\.gemma(/(ready|infer|generate|generate_stream))?"
)
CONTROL = [
    "/v2/repository/index",
    "/v2/repository/models/x/load",
    "/v2/repository/models/x/unload",
    "/v2/models/other/infer",
    "/v2/models/stats",
    "/v2/systemsharedmemory/region/a/register",
    "/v2/logging",
    "/v2/trace/setting",
    "/metrics",
    "/health",
    "/load",
    "/sleep",
    "/release_memory",
    "/update_weights",
    "/tokenize",
    "/v1/models/x/load",
    "/v1/models/x/unload",
    "/status",
    "/docs",
]
PARTS = [
    "/", "//", ".", "..", "/../", "/./", ";", "?", "#", "%", "%2e", "%2E%2e", "%2f", "%5c", "\\",
    "%00", "%252e", "%u002e", "%c0%ae", "\t", "%0d%0a", "%20", "\x7f", "é", "@", ":", "http://",
    "roles", "architect", "desk", "v1", "v2", "models", "demo.gemma", "repository", "index", "load",
    "unload", "infer", "generate", "generate_stream", "ready", "versions/1", "chat/completions",
    "completions", "stream", "health", "metrics",
    *CONTROL,
]  # fmt: skip
STARTS = ["", "/", "/v1/models/architect", "/v1/completions", "/roles/architect/v2",
          "/roles/architect/v2/models/architect", "/roles/architect/v2/models/"]  # fmt: skip
paths = st.builds(
    lambda start, parts: start + "".join(parts),
    st.sampled_from(STARTS),
    st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=4)), max_size=6),
)


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """A path that exists, some of its characters spelt in another way."""
    path = draw(
        st.sampled_from(
            ["/v1/completions", "/roles/architect/v2/models/architect/infer"]
            + [f"/roles/architect{control}" for control in CONTROL]
            + CONTROL
        )
    )
    spelt = []
    for character in path:
        way = draw(st.integers(0, 12))
        spelt.append(
            f"%{ord(character):02x}" if way == 0
            else character * 2 if way == 1
            else f"{character}./" if way == 2 and character == "/"
            else character.upper() if way == 3
            else character
        )  # fmt: skip
    return "".join(spelt)


def raw(port: int, method: str, path: str, headers: str = "") -> bytes:
    """The answer to a request whose bytes nobody has put right."""
    body = b'{"model":"architect"}'
    request = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {DESK}\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    ).encode("utf-8", "surrogatepass") + body
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
    return answer


@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT"]),
    st.one_of(paths, misspelt()),
    st.sampled_from(
        [
            "",
            "X-Original-URL: /v2/repository/index\r\n",
            "X-Rewrite-URL: /v2/repository/index\r\n",
            "X-Berth-Control: key\r\n",
            "X-Accel-Redirect: /status\r\n",
            "X-HTTP-Method-Override: POST\r\n",
            "Upgrade: h2c\r\n",
        ]
    ),
)
@settings(
    max_examples=600,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_request_arrives_at_a_path_outside_the_list(
    shared: RunningGateway, engine: Engine, method: str, path: str, headers: str
) -> None:
    engine.seen.clear()
    raw(shared.port, method, path, headers)
    for seen in engine.seen:
        assert ALLOWED.fullmatch(seen.path), (method, path, seen.path)
        assert seen.method == method
        assert "x-berth-control" not in seen.headers


def test_the_same_request_spelt_properly_does_arrive(
    shared: RunningGateway, engine: Engine
) -> None:
    for path in ("/v1/completions", "/v1/completions?a=/../b",
                 "/roles/architect/v2/models/architect/generate"):  # fmt: skip
        engine.seen.clear()
        assert raw(shared.port, "POST", path).startswith(b"HTTP/1.1 200")
        assert len(engine.seen) == 1
        assert ALLOWED.fullmatch(engine.seen[0].path)


@pytest.mark.parametrize(
    "path",
    [
        "//v1/completions",
        "/v1//completions",
        "/v1/./completions",
        "/v1/x/../completions",
        "/v1/%63ompletions",
        "/v1%2fcompletions",
        "/v1/completions/",
        "/v1/completions%3fa",
        "/V1/completions",
        "/roles/architect/v2/models/%61rchitect/infer",
    ],
)
def test_another_spelling_of_a_path_that_exists_is_no_path(
    shared: RunningGateway, engine: Engine, path: str
) -> None:
    engine.seen.clear()
    assert raw(shared.port, "POST", path).startswith(b"HTTP/1.1 404")
    assert engine.seen == []


def test_two_ways_to_say_a_bodys_length_are_refused(shared: RunningGateway, engine: Engine) -> None:
    engine.seen.clear()
    answer = raw(shared.port, "POST", "/v1/completions", "Transfer-Encoding: chunked\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b'"type":"invalid_request_error"' in answer
    assert engine.seen == []


def test_the_body_of_a_refused_request_is_not_read_as_the_next_request(
    shared: RunningGateway, engine: Engine
) -> None:
    engine.seen.clear()
    hidden = (
        f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {DESK}\r\n"
        'Content-Length: 21\r\n\r\n{"model":"architect"}'
    )
    outer = f"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: {len(hidden)}\r\n\r\n{hidden}"
    last = "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", shared.port), 10) as connection:
        connection.sendall((outer + last).encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.count(b"HTTP/1.1 404") == 2
    assert engine.seen == []
