"""What `berth-host routes` does to a gateway that runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from host.gateway import Gateway
from host.routes import close, declare, put, remove, show
from models.gateway import Endpoint, Replica, RoleRoute
from models.refusal import Refusal
from tests.gateway_nginx import demo_file
from tests.gateway_nginx.conftest import DESK
from tests.gateway_nginx.declared import demo
from tests.gateway_nginx.engine import Engine
from tests.gateway_nginx.fake_host import FakeHost
from tests.gateway_nginx.running import until

Engines = Callable[..., Engine]
LOAD = "berth/dev/desk.gemma/triton@2"


def replica(engine: Engine, load: str = LOAD, **changed: Any) -> Replica:
    return replace(Replica(engine.address, "triton@2.service", load), **changed)


def route(*replicas: Replica, model: str = "own-name") -> RoleRoute:
    return RoleRoute("gemma", "vllm", Endpoint(model, "/health", replicas))


def closing(load: str = LOAD, drain_s: float = 0) -> dict[str, Any]:
    return {"demo": "desk", "load": load, "reason": "it is being replaced", "drain_s": drain_s}


def open_role(host: FakeHost, name: str, opened: RoleRoute, **more: Any) -> None:
    asked = {"demo": "desk", "role": name, "route": asdict(opened), "adapter": {}, **more}
    put(host.gateway, json.loads(json.dumps(asked)))


def asked(host: FakeHost, model: str = "architect", **body: Any) -> httpx.Response:
    return host.post(DESK, {"model": model, "prompt": "tell 2", **body})


@pytest.fixture
def served(host: FakeHost) -> FakeHost:
    """A host whose gateway knows demo `desk` and its key."""
    host.done(host.setup())
    keys = [asdict(key) for key in demo("desk", DESK, {}).keys]
    roles = {"architect": {"model": "gemma", "engine": "vllm", "loads": [LOAD]}}
    declare(host.gateway, {"demo": "desk", "keys": keys, "roles": roles})
    return host


def test_a_role_whose_model_is_not_loaded_yet_is_a_503_that_says_so(served: FakeHost) -> None:
    answer = asked(served)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "10"
    assert answer.json()["error"]["code"] == "role_not_loaded"
    assert "its model is not loaded yet" in answer.json()["error"]["message"]


def test_why_a_model_did_not_come_up_reaches_its_clients(served: FakeHost) -> None:
    assert close(served.gateway, closing() | {"reason": "CUDA\nout of memory"})["left"] == 0
    assert "CUDA out of memory" in asked(served).json()["error"]["message"]


def test_an_open_route_serves_when_it_is_told(served: FakeHost, engine: Engine) -> None:
    open_role(served, "architect", route(replica(engine)))
    assert asked(served).status_code == 200
    text = (served.root / "etc/gateway/routes.d/desk.json").read_text()
    declared = demo("desk", DESK, {"architect": route(replica(engine))})
    assert json.loads(text) == json.loads(demo_file.routes(declared)) | {"drain_s": 30}


def test_a_role_that_is_declared_again_stays_open(served: FakeHost, engine: Engine) -> None:
    open_role(served, "architect", route(replica(engine)))
    again = {"architect": {"model": "gemma", "engine": "vllm"}}
    keys = json.loads((served.root / "etc/gateway/routes.d/desk.json").read_text())["keys"]
    declare(served.gateway, {"demo": "desk", "keys": keys, "roles": again})
    assert asked(served).status_code == 200


def test_a_closed_model_gets_nothing_more_and_the_others_all(
    served: FakeHost, engines: Engines
) -> None:
    one, two = engines(), engines()
    open_role(served, "architect", route(replica(one)))
    open_role(served, "sentry", route(replica(two, "another load")))
    assert close(served.gateway, closing()) == {"closed": ["architect"], "left": 0}
    refused = asked(served)
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "10"
    assert refused.json()["error"]["code"] == "role_not_loaded"
    assert "it is being replaced" in refused.json()["error"]["message"]
    assert one.seen == []
    assert asked(served, "sentry").status_code == 200
    open_role(served, "architect", route(replica(one)))
    assert asked(served).status_code == 200


def test_answers_under_way_are_waited_for_before_a_model_goes(
    served: FakeHost, engine: Engine
) -> None:
    open_role(served, "architect", route(replica(engine)))
    engine.release.clear()
    answers: list[httpx.Response] = []
    client = threading.Thread(target=lambda: answers.append(asked(served, prompt="wait")))
    client.start()
    until(lambda: engine.generating == 1, "it is under way")
    assert close(served.gateway, closing(drain_s=0.2)) == {"closed": ["architect"], "left": 1}
    left: list[int] = []
    closer = threading.Thread(
        target=lambda: left.append(close(served.gateway, closing(drain_s=20))["left"])
    )
    closer.start()
    engine.release.set()
    client.join(20)
    closer.join(20)
    assert left == [0]
    assert answers[0].status_code == 200


def test_of_two_replicas_one_that_is_closed_leaves_the_other(
    served: FakeHost, engines: Engines
) -> None:
    one, two = engines(), engines()
    open_role(served, "architect", route(replica(one), replica(two, "another load")))
    close(served.gateway, closing())
    for _ in range(6):
        assert asked(served).status_code == 200
    assert (len(one.seen), len(two.seen)) == (0, 6)


def test_a_replica_that_is_dropped_gets_nothing_more_and_ends_what_it_has(
    served: FakeHost, engines: Engines
) -> None:
    one, two = engines(), engines()
    both = (replica(one), replica(two, "another load"))
    adapter = served.root / "etc/adapter"
    for folder in ("routes.d", "secrets.d"):
        (adapter / folder).mkdir(parents=True)
    adapted = {"architect": {"engine": "triton-vllm"}, "architect.1": {"engine": "triton-vllm"}}
    open_role(served, "architect", route(*both), adapter=adapted)
    one.release.clear()
    two.release.clear()
    answers: list[httpx.Response] = []
    clients = [
        threading.Thread(target=lambda: answers.append(asked(served, prompt="wait")))
        for _ in range(4)
    ]
    for client in clients:
        client.start()
    until(lambda: one.generating == two.generating == 2, "both are busy")
    said: list[dict[str, Any]] = []
    only = {"demo": "desk", "role": "architect", "route": asdict(route(both[0])),
            "adapter": {"architect": adapted["architect"]}}  # fmt: skip
    dropping = threading.Thread(target=lambda: said.append(put(served.gateway, only)))
    dropping.start()
    until(lambda: len(_replicas(served)) == 1, "new requests have one replica")
    assert asked(served).status_code == 200
    dropping.join(1)
    assert dropping.is_alive()
    assert (len(one.seen), len(two.seen)) == (3, 2)
    assert json.loads((adapter / "routes.d/desk.json").read_text())["routes"] == adapted
    two.release.set()
    dropping.join(20)
    assert said == [{"left": 0}]
    assert json.loads((adapter / "routes.d/desk.json").read_text())["routes"] == only["adapter"]
    assert one.generating == 2
    one.release.set()
    for client in clients:
        client.join(20)
    assert [answer.status_code for answer in answers] == [200] * 4


def test_a_closed_replica_is_waited_for_and_the_others_are_not(
    served: FakeHost, engines: Engines
) -> None:
    one, two = engines(), engines()
    open_role(served, "architect", route(replica(one), replica(two, "another load")))
    close(served.gateway, closing())
    two.release.clear()
    client = threading.Thread(target=lambda: asked(served, prompt="wait"))
    client.start()
    until(lambda: two.generating == 1, "it is under way")
    assert close(served.gateway, closing(drain_s=20)) == {"closed": ["architect"], "left": 0}
    assert two.generating == 1
    two.release.set()
    client.join(20)


def test_a_body_that_comes_in_while_its_role_moves_goes_where_the_role_is_then(
    served: FakeHost, engines: Engines
) -> None:
    one, two = engines(), engines()
    open_role(served, "architect", route(replica(one)))
    body = b'{"model": "architect", "prompt": "tell 2"}'
    begun, moved = threading.Event(), threading.Event()

    def slowly() -> Iterator[bytes]:
        yield body[:9]
        begun.set()
        assert moved.wait(20)
        yield body[9:]

    answers: list[httpx.Response] = []
    client = threading.Thread(target=lambda: answers.append(served.post(DESK, slowly())))
    client.start()
    assert begun.wait(20)
    until(lambda: served.gateway.status()["requests"]["desk/default"] == 1, "it is let in")
    open_role(served, "architect", route(replica(two, "another load")))
    moved.set()
    client.join(20)
    assert answers[0].status_code == 200
    assert (len(one.seen), len(two.seen)) == (0, 1)


def _replicas(host: FakeHost) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = host.gateway.status()["demos"]["desk"]["architect"]["replicas"]
    return found


def test_a_replicas_own_model_name_is_what_it_is_asked_for(
    served: FakeHost, engines: Engines
) -> None:
    one, two = engines(), engines()
    first = replica(one, model="desk/architect.0", checked_at=two.address)
    second = replica(one, "another load", model="desk/architect.1")
    open_role(served, "architect", route(first, second))
    for _ in range(20):
        assert asked(served).json()["model"] == "architect"
    names = {json.loads(seen.body)["model"] for seen in one.seen}
    assert names == {"desk/architect.0", "desk/architect.1"}
    two.stop()  # where the first one's health is asked
    until(lambda: _troubles(served) == {"desk/architect.0"}, "its check fails")
    one.seen.clear()
    for _ in range(6):
        asked(served)
    assert {json.loads(seen.body)["model"] for seen in one.seen} == {"desk/architect.1"}


def _troubles(host: FakeHost) -> set[str]:
    role = host.gateway.status()["demos"]["desk"]["architect"]
    found = zip(("desk/architect.0", "desk/architect.1"), role["replicas"], strict=True)
    return {name for name, each in found if each["trouble"]}


def test_the_adapter_knows_a_role_before_the_gateway_sends_for_it(
    served: FakeHost, engine: Engine, tmp_path: Path
) -> None:
    adapter = served.root / "etc/adapter"
    for folder in ("routes.d", "secrets.d"):
        (adapter / folder).mkdir(parents=True)
    key = tmp_path / "control.key"
    key.write_text("control-secret\n")
    its = {"architect": {"engine": "triton-vllm", "key": "control"}}
    open_role(
        served, "architect", route(replica(engine)), adapter=its, key_files={"control": str(key)}
    )
    written = json.loads((adapter / "routes.d/desk.json").read_text())
    assert written == {"version": 1, "routes": its}
    secret = adapter / "secrets.d/desk.json"
    assert json.loads(secret.read_text()) == {"control": "control-secret"}
    assert secret.stat().st_mode & 0o777 == 0o640
    assert "control-secret" not in json.dumps(show(served.gateway, {"demo": "desk"}))
    remove(served.gateway, {"demo": "desk", "role": None})
    assert not list(adapter.rglob("*.json"))


def test_a_role_that_is_taken_away_is_unknown_once_its_answers_are_through(
    served: FakeHost, engines: Engines
) -> None:
    one, two = engines(), engines()
    open_role(served, "architect", route(replica(one)))
    open_role(served, "sentry", route(replica(two)))
    assert remove(served.gateway, {"demo": "desk", "role": "architect", "drain_s": 5}) == {
        "left": 0
    }
    refused = asked(served)
    assert refused.status_code == 404
    assert refused.json()["error"]["message"].endswith("it has: sentry")
    assert asked(served, "sentry").status_code == 200
    remove(served.gateway, {"demo": "desk", "role": "architect"})
    remove(served.gateway, {"demo": "desk", "role": None})
    assert host_knows(served) == []
    remove(served.gateway, {"demo": "desk", "role": None})


def host_knows(host: FakeHost) -> list[str]:
    return list(host.gateway.status()["demos"])


def test_a_role_of_a_demo_that_is_not_known_is_refused(host: FakeHost, engine: Engine) -> None:
    host.done(host.setup())
    with pytest.raises(Refusal, match="demo desk is not known to this host's gateway"):
        open_role(host, "architect", route(replica(engine)))


def test_a_name_that_would_leave_the_folder_is_refused(host: FakeHost) -> None:
    host.done(host.setup())
    for name in ("../x", "", None, "A", "a/b", "a.b", "ä"):
        with pytest.raises(Refusal, match="no demo's name"):
            show(host.gateway, {"demo": name})


def test_a_host_without_a_gateway_has_nothing_to_close_or_take_away(host: FakeHost) -> None:
    assert close(host.gateway, closing()) == {"closed": [], "left": 0}
    assert remove(host.gateway, {"demo": "desk", "role": "architect"}) == {"left": 0}
    assert show(host.gateway, {"demo": "desk"})["there"] is False


def test_a_file_that_somebody_broke_is_made_anew(served: FakeHost, engine: Engine) -> None:
    (served.root / "etc/gateway/routes.d/desk.json").write_text("{")
    with pytest.raises(Refusal, match="not known"):
        open_role(served, "architect", route(replica(engine)))
    keys = [asdict(key) for key in demo("desk", DESK, {}).keys]
    declare(served.gateway, {"demo": "desk", "keys": keys, "roles": {}})
    open_role(served, "architect", route(replica(engine)))
    assert asked(served).status_code == 200


def troubled(host: FakeHost) -> bool:
    (known,) = host.gateway.status()["demos"]["desk"].values()
    return any(each["trouble"] for each in known["replicas"])


def test_a_replica_is_asked_as_soon_as_it_is_opened_whatever_was_seen_of_it_before(
    served: FakeHost, engine: Engine
) -> None:
    """As a role that goes to another engine and back within the time for which a mark holds."""
    open_role(served, "architect", route(replica(engine)))
    engine.healthy = False
    until(lambda: troubled(served), "its check has failed")
    assert asked(served).status_code == 503
    close(served.gateway, closing())
    engine.healthy = True
    open_role(served, "architect", route(replica(engine)))
    assert asked(served).status_code == 200


class Killed(BaseException):
    """As a run's end that nothing answers to."""


def killed_before_it_is_served(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]
) -> None:
    def die(_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Gateway, "serve", die)
        with pytest.raises(Killed):
            change()


def test_an_open_route_that_a_killed_run_only_wrote_is_served_by_the_next(
    served: FakeHost, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = route(replica(engine))
    killed_before_it_is_served(monkeypatch, lambda: open_role(served, "architect", opened))
    assert asked(served).status_code == 503
    open_role(served, "architect", opened)
    assert asked(served).status_code == 200


def test_a_closed_route_that_a_killed_run_only_wrote_is_closed_by_the_next(
    served: FakeHost, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_role(served, "architect", route(replica(engine)))
    killed_before_it_is_served(monkeypatch, lambda: close(served.gateway, closing()))
    assert asked(served).status_code == 200
    close(served.gateway, closing())
    assert asked(served).status_code == 503


def test_a_demo_that_goes_takes_what_a_killed_run_was_writing_with_it(served: FakeHost) -> None:
    half = served.root / "etc/gateway/routes.d/desk.json.new"
    half.write_text("{")
    remove(served.gateway, {"demo": "desk", "role": None})
    assert list(half.parent.iterdir()) == []
