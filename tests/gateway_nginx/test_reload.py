"""Demos that come and go, while others are served."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.gateway_nginx import demo_file
from tests.gateway_nginx.conftest import CLINIC, DESK, Started, client
from tests.gateway_nginx.declared import demo, gateway, role
from tests.gateway_nginx.demo_file import DemoRoutes
from tests.gateway_nginx.engine import Engine
from tests.gateway_nginx.running import RunningGateway, until


def test_streams_of_other_demos_go_on_while_demos_come_and_go(
    started: Started, engine: Engine
) -> None:
    running = started(
        gateway(timeout_s=60), demo("desk", DESK, {"architect": role(engine.address)})
    )
    texts: list[str] = []

    def stream() -> None:
        with client(running, DESK) as own:
            body = {"model": "architect", "prompt": "tell 150", "stream": True}
            texts.append(own.post("/v1/completions", json=body).text)

    threads = [threading.Thread(target=stream) for _ in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: engine.generating == 8, "the streams are open")
    for number in range(5):
        running.write(demo("clinic", CLINIC, {f"nurse-{number}": role(engine.address)}))
        running.changed()
        running.reload()
        with client(running, CLINIC) as clinic:
            assert [each["id"] for each in clinic.get("/v1/models").json()["data"]] == [
                f"nurse-{number}"
            ]
        (running.place / "routes.d/clinic.json").unlink()
        running.changed()
        with client(running, CLINIC) as clinic:
            assert clinic.get("/v1/models").status_code == 401
    assert engine.generating == 8
    for thread in threads:
        thread.join(30)
    assert all(text.endswith("data: [DONE]\n\n") for text in texts)
    assert {text.count('"index": 0') for text in texts} == {150}
    until(lambda: len(running.workers()) == 2, "old workers are gone")
    until(lambda: running.status()["requests"]["desk/default"] == 0, "nothing is counted")


def test_a_stream_that_never_ends_does_not_keep_an_old_worker_for_ever(
    started: Started, engine: Engine
) -> None:
    running = started(gateway(timeout_s=1), demo("desk", DESK, {"architect": role(engine.address)}))
    engine.release.clear()
    with client(running, DESK) as own:
        body = {"model": "architect", "prompt": "hang 1", "stream": True}
        with own.stream("POST", "/v1/completions", json=body) as answer:
            lines = answer.iter_lines()  # dropped, it would close the connection
            next(lines)
            running.reload()
            until(lambda: len(running.workers()) == 2, "old workers are gone", 5)
    until(lambda: engine.generating == 0, "its generation stopped")


@contextmanager
def load(running: RunningGateway) -> Iterator[None]:
    """Four clients that ask all the time; none of their requests may fail."""
    stop = threading.Event()
    failures: list[str] = []
    served = [0]

    def ask() -> None:
        with client(running, DESK) as own:
            while not stop.is_set():
                try:
                    answer = own.post("/v1/completions", json={"model": "architect"})
                except httpx.TransportError as error:
                    failures.append(repr(error))
                    continue
                served[0] += 1
                if answer.status_code != 200:
                    failures.append(answer.text)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
    assert failures == []
    assert served[0] > 50


def test_no_request_of_another_demo_fails_while_routes_change(
    started: Started, engine: Engine
) -> None:
    running = started(gateway(), demo("desk", DESK, {"architect": role(engine.address)}))
    with load(running):
        for number in range(10):
            running.write(demo("clinic", CLINIC, {f"nurse-{number}": role(engine.address)}))
            running.changed()
            with client(running, CLINIC) as clinic:
                assert clinic.get(f"/v1/models/nurse-{number}").status_code == 200


def test_a_demos_broken_file_is_left_out_and_the_others_are_served(
    started: Started, engine: Engine
) -> None:
    running = started(gateway(), demo("desk", DESK, {"architect": role(engine.address)}))
    for text in (
        "{",
        "[]",
        '{"version":2}',
        '{"version":1,"demo":"clinic","keys":[{}],"roles":{}}',
        '{"version":1,"demo":"other","keys":[],"roles":{}}',
    ):
        (running.place / "routes.d/clinic.json").write_text(text)
        running.changed()
        (left_out,) = running.status()["left_out"]
        assert left_out["file"] == "clinic.json"
        assert running.check("clinic.json", text) == left_out["why"]
        with client(running, DESK) as own:
            assert own.get("/v1/models").status_code == 200
    running.reload()
    assert [each["file"] for each in running.status()["left_out"]] == ["clinic.json"]


def refused(running: RunningGateway, routes: DemoRoutes) -> str:
    return running.check(f"{routes.demo}.json", demo_file.routes(routes))


def test_a_key_of_two_demos_is_refused_to_the_one_that_comes_later(
    started: Started, engine: Engine
) -> None:
    desk = demo("desk", DESK, {"architect": role(engine.address)})
    running = started(gateway(), desk)
    assert refused(running, desk) == ""
    assert refused(running, demo("clinic", CLINIC, {"nurse": role(engine.address)})) == ""
    assert refused(running, demo("clinic", DESK, {"nurse": role(engine.address)})) == (
        "key `default` is also a key of demo `desk`"
    )


@pytest.mark.parametrize(
    "address", ["10.0.0.1:80", "127.0.0.1:0", "127.0.0.1:99999", "localhost:80", "x"]
)
def test_only_the_hosts_loopback_is_ever_called(shared: RunningGateway, address: str) -> None:
    said = refused(shared, demo("new", "n" * 40, {"architect": role(address)}))
    assert said == "roles.architect.openai.replicas[0].address"
