"""What the gateway takes of a client."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.gateway_nginx.conftest import DESK, Started, client
from tests.gateway_nginx.declared import demo, gateway, role
from tests.gateway_nginx.engine import Engine
from tests.gateway_nginx.running import RunningGateway, until

WAIT = {"model": "architect", "prompt": "wait"}


def chunks(total: int) -> Iterator[bytes]:
    yield b'{"model":"architect","prompt":"'
    for _ in range(total // 1000):
        yield b"x" * 1000
    yield b'"}'


@pytest.mark.parametrize("told", [True, False], ids=["told", "chunked"])
def test_a_body_over_the_limit_is_refused_and_one_under_it_is_not(
    desk: httpx.Client, engine: Engine, told: bool
) -> None:
    under, over = 900_000, 1_200_000
    engine.seen.clear()
    whole = b"".join(chunks(under))
    desk.post("/v1/completions", content=whole if told else chunks(under)).raise_for_status()
    assert engine.seen[-1].body.endswith(b'xxx"}')
    try:
        refused = desk.post(
            "/v1/completions", content=b"".join(chunks(over)) if told else chunks(over)
        )
    except httpx.WriteError:
        pytest.fail("the refusal could not be read")
    assert refused.status_code == 413
    assert refused.json()["error"]["code"] == "request_too_large"
    assert len(engine.seen) == 1


def test_a_prompt_is_never_written_to_disk(shared: RunningGateway, desk: httpx.Client) -> None:
    desk.post("/v1/completions", content=b"".join(chunks(900_000))).raise_for_status()
    assert "buffered to a temporary file" not in shared.errors()
    assert [path for path in (shared.place / "run").rglob("*") if path.is_file()] == [
        shared.place / "run/nginx.pid"
    ]


@contextmanager
def waiting(running: RunningGateway, engine: Engine, number: int) -> Iterator[list[int]]:
    """So many requests under way; their statuses, once they are released."""
    engine.release.clear()
    statuses: list[int] = []

    def ask() -> None:
        with client(running, DESK) as own:
            statuses.append(own.post("/v1/completions", json=WAIT).status_code)

    threads = [threading.Thread(target=ask) for _ in range(number)]
    for thread in threads:
        thread.start()
    until(lambda: engine.generating == number, "all are under way")
    yield statuses
    engine.release.set()
    for thread in threads:
        thread.join(10)


def test_a_key_with_all_its_requests_under_way_gets_429_until_one_ends(
    started: Started, engine: Engine
) -> None:
    running = started(
        gateway(connections_per_key=2),
        demo("desk", DESK, {"architect": role(engine.address)}),
        demo("clinic", "c" * 40, {"nurse": role(engine.address)}, connections_per_key=1),
    )
    with client(running, DESK) as desk, client(running, "c" * 40) as clinic:
        with waiting(running, engine, 2) as statuses:
            for _ in range(3):
                refused = desk.get("/v1/models")
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
                assert refused.json()["error"]["code"] == "too_many_connections"
            assert clinic.get("/v1/models").status_code == 200
        assert statuses == [200, 200]
        until(lambda: desk.get("/v1/models").status_code == 200, "there is room again")


def test_what_a_killed_worker_had_counted_is_taken_back(started: Started, engine: Engine) -> None:
    running = started(gateway(workers=1), demo("desk", DESK, {"architect": role(engine.address)}))
    engine.release.clear()
    asked = threading.Thread(target=lose_connection, args=(running,))
    asked.start()
    until(lambda: running.status()["requests"]["desk/default"] == 1, "it is counted")
    os.kill(running.workers()[0], signal.SIGKILL)
    asked.join(10)

    def taken_back() -> bool:
        try:
            status = running.status()
        except httpx.TransportError:
            return False
        (role_status,) = status["demos"]["desk"].values()
        counted = [replica["requests"] for replica in role_status["replicas"]]
        return status["requests"] == {"desk/default": 0} and not any(counted)

    until(taken_back, "nothing is counted")
    until(lambda: engine.generating == 0, "its generation stopped")


def lose_connection(running: RunningGateway) -> None:
    with client(running, DESK) as own, pytest.raises(httpx.TransportError):
        own.post("/v1/completions", json=WAIT)


def test_wrong_methods_and_unread_requests_are_told_in_openais_shape(
    shared: RunningGateway, desk: httpx.Client
) -> None:
    wrong = desk.get("/v1/completions")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert desk.post("/v1/models").status_code == 405
    for request, status in (
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40000 + b"\r\n\r\n", b"431"),
    ):
        with socket.create_connection(("127.0.0.1", shared.port), 10) as connection:
            connection.sendall(request)
            answer = connection.makefile("rb").read()
        head, _, body = answer.partition(b"\r\n\r\n")
        assert status in head.split(b"\r\n")[0]
        assert "error" in json.loads(body)


def begun_upload(running: RunningGateway) -> socket.socket:
    """A request that is refused before its body has come."""
    connection = socket.create_connection(("127.0.0.1", running.port), 10)
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {DESK}\r\n"
    connection.sendall(f"{head}Content-Length: 100000\r\n\r\n".encode() + b" " * 1000)
    assert b" 429 " in connection.recv(1000)
    return connection


def test_a_refused_upload_that_still_comes_in_takes_nobodys_place(
    started: Started, engine: Engine
) -> None:
    running = started(
        gateway(connections_per_key=2), demo("desk", DESK, {"architect": role(engine.address)})
    )
    with client(running, DESK) as desk:
        with waiting(running, engine, 2):
            uploads = [begun_upload(running) for _ in range(3)]
        until(lambda: running.status()["requests"] == {"desk/default": 0}, "none is counted")
        assert desk.get("/v1/models").status_code == 200
    for upload in uploads:
        upload.close()


def of_values(number: int) -> bytes:
    return b'{"model":"architect","prompt":[' + b",".join([b"[]"] * number) + b"]}"


def test_a_body_of_more_values_than_any_prompt_has_is_refused(
    started: Started, engine: Engine
) -> None:
    running = started(
        gateway(max_body_mib=32), demo("desk", DESK, {"architect": role(engine.address)})
    )
    with client(running, DESK) as desk:
        engine.seen.clear()
        refused = desk.post("/v1/completions", content=of_values(3_000_000))
        assert (refused.status_code, engine.seen) == (413, [])
        assert "more than 1000000 values" in refused.json()["error"]["message"]
        # As many commas in a text are no values.
        text = {"model": "architect", "prompt": 'a "list", of [things], ' * 200_000}
        assert desk.post("/v1/completions", json=text).status_code == 200


def test_what_large_bodies_take_is_given_back(started: Started, engine: Engine) -> None:
    running = started(
        gateway(max_body_mib=32, workers=1),
        demo("desk", DESK, {"architect": role(engine.address)}),
    )

    def taken_mib() -> int:
        (worker,) = running.workers()
        lines = Path(f"/proc/{worker}/status").read_text().splitlines()
        (line,) = [line for line in lines if line.startswith("VmRSS")]
        return int(line.split()[1]) // 1024

    with client(running, DESK) as desk:
        for _ in range(8):
            desk.post("/v1/completions", content=of_values(490_000)).raise_for_status()
        print("MIB", taken_mib())
        assert taken_mib() < 150  # Else they are collected at ten times the first, above 300.
