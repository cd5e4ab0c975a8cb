"""A server of one model's own that runs already, as `up` and a refresh see it under load."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from components.providers import (
    berth_host,
    engine_canary,
    gateway_routes,
    ledger,
    server_answering,
)
from components.providers.served_model import ServedModelProvider
from components.providers.ssh import Session
from tests.engines.fake_openai import VLLM, FakeOpenAi
from tests.engines.serving import serving
from tests.providers.host_ledger import GPUS, HOLDER, record
from tests.providers.local_sshd import LocalSshd

PROVIDER = ServedModelProvider()
LOAD = "berth/dev/shop.big/shop-architect"
ELSEWHERE = replace(record("stand-in", 1), instead_of=LOAD)
BERTH_HOST = """#!/bin/sh
[ "$1" = routes ] || {{ echo '{{"claims": []}}'; exit; }}
echo "$2 $(cat)" >> {place}/routes
cat {place}/closed
"""
SYSTEMCTL = """#!/bin/sh
case "$1" in
show) echo "ActiveState=$(cat {place}/state)"; echo NRestarts=0 ;;
is-active) cat {place}/state ;;
disable) echo inactive > {place}/state ;;
esac
"""


@dataclass
class Busy(FakeOpenAi):
    """vLLM that generates for clients all the time; its answers to Berth have an end."""

    made: int = 0

    async def _metrics(self, _: Request) -> Response:
        self.made += 7
        running = 'vllm:num_requests_running{model_name="m"} 3.0'
        return PlainTextResponse(f"{running}\nvllm:generation_tokens_total {self.made}.0\n")


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSshd]:
    """A host on which the unit runs until it is stopped."""
    server = LocalSshd(tmp_path_factory.mktemp("sshd"))
    server.executable("systemctl", SYSTEMCTL.format(place=server.place))
    server.executable("journalctl", "#!/bin/sh\n")
    server.executable("nvidia-smi", "#!/bin/sh\nexit 9\n")
    server.executable("berth-host", BERTH_HOST.format(place=server.place))
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def short(reached: LocalSshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(berth_host, "PROGRAM", "berth-host")
    monkeypatch.setattr(engine_canary, "STOPS_S", 0.5)
    monkeypatch.setattr(server_answering, "GLANCE_S", 0.5)
    (reached.place / "routes").unlink(missing_ok=True)
    (reached.place / "state").write_text("active\n")
    clients_left(reached, 0)


def clients_left(reached: LocalSshd, number: int) -> None:
    """How many a closed route still has when the time is over."""
    said = {"closed": ["architect"], "left": number}
    (reached.place / "closed").write_text(json.dumps(said))


def closed(reached: LocalSshd) -> list[dict[str, Any]]:
    """What the gateway was asked to close, in order."""
    log: Path = reached.place / "routes"
    rows = [line.partition(" ") for line in log.read_text().splitlines()] if log.exists() else []
    return [json.loads(payload) for action, _, payload in rows if action == "close"]


@contextmanager
def behind_a_port(fake: FakeOpenAi) -> Iterator[float]:
    """The engine's port, as Pulumi hands it over, while another thread serves it."""
    loop, up = asyncio.new_event_loop(), threading.Event()
    ports: list[float] = []

    async def serve() -> None:
        async with serving(fake.app) as url:
            ports.append(float(url.rpartition(":")[2]))
            up.set()
            await over.wait()

    over = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert up.wait(10)
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)


def props(reached: LocalSshd, port: float, **changed: Any) -> dict[str, Any]:
    return {
        "ssh": reached.ssh,
        "host": "alpha",
        "unit": "shop-architect.service",
        "engine": "vllm",
        "port": port,
        "model": "m",
        "incarnation": "c1/0",
        "prepare": "true\n",
        "gpus": GPUS[:1],
        "claim_mib": 20309.0,
        "owner": HOLDER,
        "holder": HOLDER,
        "claim_name": LOAD,
        "arguments": {},
        "load_timeout_s": 5.0,
        "unload_timeout_s": 5.0,
        "canary_timeout_s": 5.0,
        "roles": ["architect"],
        "fallback": ledger.declared(ELSEWHERE),
    } | changed


def test_its_route_is_closed_before_the_canary_asks_anything(
    reached: LocalSshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeOpenAi(VLLM)
    when: list[int] = []
    close = gateway_routes.close

    async def seen(session: Session, holder: str, load: str, reason: str) -> bool:
        when.append(len(fake.seen))
        return await close(session, holder, load, reason)

    monkeypatch.setattr(gateway_routes, "close", seen)
    with behind_a_port(fake) as port:
        outs = PROVIDER.create(props(reached, port)).outs or {}
    assert (outs["state"], when) == ("READY", [0])
    (asked,) = closed(reached)
    assert (asked["demo"], asked["load"]) == ("shop", LOAD)
    assert asked["reason"] == "its model is being loaded"


def test_clients_that_do_not_go_are_not_taken_for_an_answer_that_cannot_be_cut_off(
    reached: LocalSshd,
) -> None:
    clients_left(reached, 3)
    with behind_a_port(Busy(VLLM)) as port:
        outs = PROVIDER.create(props(reached, port)).outs or {}
    assert (outs["state"], outs["reason"]) == ("READY", "")


def test_with_nobody_left_one_that_generates_on_does_not_serve(
    reached: LocalSshd, capfd: pytest.CaptureFixture[str]
) -> None:
    with behind_a_port(Busy(VLLM)) as port:
        outs = PROVIDER.create(props(reached, port)).outs or {}
    assert outs["state"] == "FAILED"
    assert "a stream cannot be cut off: it still generates" in capfd.readouterr().err


def test_a_new_start_opens_the_route_again_and_a_note_does_not_close_it(
    reached: LocalSshd,
) -> None:
    with behind_a_port(FakeOpenAi(VLLM)) as port:
        outs = PROVIDER.create(props(reached, port)).outs or {}
        again = PROVIDER.update("x", outs | {"state": "STARTING"}, props(reached, port)).outs or {}
        assert again["since"] != outs["since"]
        assert len(closed(reached)) == 2
        noted = PROVIDER.update("x", again, props(reached, port, owner="another")).outs or {}
        read = PROVIDER.read("x", noted)
    assert noted["since"] == again["since"]
    assert (read.outs or {})["since"] == again["since"]
    assert len(closed(reached)) == 2


def test_one_that_lets_a_refresh_wait_is_not_gone(reached: LocalSshd) -> None:
    with behind_a_port(FakeOpenAi(VLLM, slow_s=2)) as port:
        read = PROVIDER.read("x", props(reached, port) | {"state": "READY", "since": "then"})
    outs = read.outs or {}
    assert (read.id, outs["state"], outs["since"]) == ("x", "READY", "then")


def test_one_that_answers_with_an_error_is_gone(reached: LocalSshd) -> None:
    with behind_a_port(FakeOpenAi(VLLM, refuse=(500, {"error": "EngineDeadError"}))) as port:
        read = PROVIDER.read("x", props(reached, port) | {"state": "READY", "since": "then"})
    assert read.id == ""
