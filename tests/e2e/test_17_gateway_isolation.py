"""Two demos behind one gateway: neither opens or disturbs the other, nor what is an operator's.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from tests.e2e.clients import Reached
from tests.e2e.constant_load import constant_load
from tests.e2e.control_paths import Target, Wire, attempts, smuggled
from tests.e2e.host import TestHost, until
from tests.e2e.workspace import Workspace, reachable

SCRIBE, GUARD = "gemma-4-e4b-it", "gemma-4-e2b-it"
LEFT, RIGHT = {"left-scribe"}, {"right-guard", "right-twin"}
TRITON, VLLM = 8003, 8202
UNIT = "left-left-scribe.service"
ENTRY = f"right.{GUARD}"
SPELLINGS = 1500
"""For each demo."""
STREAM = {
    "text_input": "Tell me about harbours",
    "stream": True,
    "sampling_parameters": json.dumps({"max_tokens": 800, "ignore_eos": True}),
}
"""Eight seconds and more."""


def left(*keys: str) -> dict[str, Any]:
    """A demo under vLLM."""
    role = {"model": SCRIBE, "instance": "triton@2", "engine": "vllm"}
    demo = {"name": "left", "roles": dict.fromkeys(LEFT, role)}
    return {"host_stack": "base", "demo": demo | ({"keys": list(keys)} if keys else {})}


def right() -> dict[str, Any]:
    """A demo in Triton, of two roles that share a model."""
    roles = {name: {"model": GUARD, "instance": "triton@3"} for name in sorted(RIGHT)}
    return {"host_stack": "base", "demo": {"name": "right", "roles": roles}}


@dataclass(frozen=True)
class Both:
    """How clients of the two reach their roles."""

    left: Reached
    right: Reached


@pytest.fixture(scope="module")
def demos(workspace: Workspace, host: TestHost) -> Iterator[None]:
    workspace.write_stack("base", reachable(host, "triton@2", "triton@3"))
    workspace.write_stack("left", left())
    workspace.write_stack("right", right())
    for stack in ("base", "left", "right"):
        workspace.up(stack)
    yield
    for stack in ("left", "right", "base"):
        workspace.down(stack)


@pytest.fixture(scope="module")
def both(demos: None, workspace: Workspace) -> Both:  # noqa: ARG001 - they have to be there
    return Both(*(Reached.of(workspace, stack, "base") for stack in ("left", "right")))


@pytest.fixture(scope="module")
def undisturbed(demos: None, host: TestHost) -> str:  # noqa: ARG001
    """What a stream of the right demo says, asked of its engine itself."""
    url = f"http://127.0.0.1:{TRITON}/v2/models/{ENTRY}/generate_stream"
    said = host.sh(f"curl -sN -m 110 {url} -d '{json.dumps(STREAM)}'")
    assert said.count("data: ") > 500
    return said.replace(f'"model_name":"{ENTRY}"', '"model_name":"right-guard"')


def chat(role: str) -> dict[str, Any]:
    """A chat of a few tokens."""
    return {"model": role, "messages": [{"role": "user", "content": "x"}], "max_tokens": 2}


def asked(http: httpx.Client, name: str) -> Iterator[httpx.Response]:
    """Every way to ask for a role by a name."""
    yield http.get(f"/v1/models/{name}")
    yield http.post("/v1/chat/completions", json=chat(name))
    yield http.post("/v1/chat/completions", json=chat(name) | {"stream": True})
    for path in ("/v1/completions", "/v1/stream"):
        yield http.post(path, json={"model": name, "prompt": "x", "max_tokens": 2})
    base = f"/roles/{name}/v2"
    yield http.get(f"{base}/health/ready")
    for operation in ("", "/ready"):
        yield http.get(f"{base}/models/{name}{operation}")
    for operation in ("/infer", "/generate", "/generate_stream"):
        yield http.post(f"{base}/models/{name}{operation}", json={"text_input": "x"})


@pytest.mark.parametrize(
    ("of", "others"),
    [
        ("left", [*RIGHT, "right/right-guard", GUARD, ENTRY, "left/right-guard"]),
        ("right", [*LEFT, "left/left-scribe", SCRIBE, f"left.{SCRIBE}", "right/left-scribe"]),
    ],
)
def test_a_key_opens_nothing_of_the_other_demo_by_any_name(
    both: Both, of: str, others: list[str]
) -> None:
    reached: Reached = getattr(both, of)
    own = LEFT if of == "left" else RIGHT
    with reached.http() as http:
        for role in own:
            assert http.post("/v1/chat/completions", json=chat(role)).status_code == 200
        for name in others:
            for answer in asked(http, name):
                assert answer.status_code == 404, (name, answer.request.url, answer.text)
                said = answer.text.replace("\\/", "/").replace(name, "")
                assert not any(role in said for role in (LEFT | RIGHT) - own)


@pytest.mark.parametrize(("of", "own"), [("left", LEFT), ("right", RIGHT)])
def test_a_key_is_told_of_its_own_roles_alone(both: Both, of: str, own: set[str]) -> None:
    reached: Reached = getattr(both, of)
    with reached.http() as http:
        assert {each["id"] for each in http.get("/v1/models").json()["data"]} == own


def control_key(host: TestHost) -> str:
    return host.sh("cat /etc/berth/instances/3.key")


def loaded(host: TestHost) -> tuple[str, str]:
    """What both engines hold, asked on the host's own loopback."""
    key = control_key(host)
    index = f"http://127.0.0.1:{TRITON}/v2/repository/index"
    return (
        host.sh(f"curl -sf -m 10 -X POST -H 'X-Berth-Control: {key}' {index}"),
        host.sh(f"curl -sf -m 10 127.0.0.1:{VLLM}/v1/models | tr , '\\n' | grep '\"id\"'"),
    )


def verbose(host: TestHost, level: int) -> None:
    """Whether Triton tells its log of each request."""
    host.sh(
        f"curl -sf -m 10 -H 'X-Berth-Control: {control_key(host)}'"
        f" -d '{{\"log_verbose_level\": {level}}}' http://127.0.0.1:{TRITON}/v2/logging"
    )


def seen_by_engines(host: TestHost, since: str) -> set[str]:
    """Paths of the requests that the engines' own logs tell of."""
    said = host.sh(f"journalctl -u triton@3 -u {UNIT} -o cat --since @{since}")
    asked = re.findall(r'HTTP request: \d+ ([^\s"]+)|"[A-Z]+ (\S+) HTTP/', said)
    return {path for each in asked for path in each if path}


def test_no_operators_path_is_reached_however_it_is_spelt(both: Both, host: TestHost) -> None:
    control = control_key(host)
    of_left = Target("left", "left-scribe", f"left.{SCRIBE}", VLLM, control)
    of_right = Target("right", "right-guard", ENTRY, TRITON, control)
    requests = [
        *attempts(of_left, both.left.key, SPELLINGS),
        *attempts(of_right, both.right.key, SPELLINGS),
        *smuggled(of_right, both.right.key),
    ]
    wire, before = Wire(both.right), loaded(host)
    verbose(host, 1)
    since = host.sh("sleep 1; date +%s")
    with ThreadPoolExecutor(8) as clients:
        statuses = list(clients.map(wire.statuses, requests))
    passed = [
        (request, found)
        for request, found in zip(requests, statuses, strict=True)
        if any(200 <= status < 300 for status in found)
    ]
    assert passed == []
    assert sum(404 in found for found in statuses) > SPELLINGS / 3
    # The engines' logs do tell of what a client may ask.
    own = f"/v2/models/{ENTRY}"
    with both.right.http() as http:
        http.get("/roles/right-guard/v2/models/right-guard").raise_for_status()
    with both.left.http() as http:
        http.post("/v1/chat/completions", json=chat("left-scribe")).raise_for_status()
    seen = set[str]()

    def told() -> bool:
        seen.update(seen_by_engines(host, since))
        return {own, "/v1/chat/completions"} <= seen

    until(told, 15, "the engines' logs tell of it")
    verbose(host, 0)
    # Health checks, what was just asked, the way of the smuggled, and this test's own.
    allowed = {own, f"{own}/ready", f"{own}/generate", "/health", "/metrics",
               "/v1/chat/completions", "/v2/logging"}  # fmt: skip
    assert seen <= allowed
    assert loaded(host) == before
    lines = host.sh(
        f'journalctl -t berth_gateway -o cat --since @{since} | grep \'"request_id":"fuzz-[lr]\''
    ).splitlines()
    assert len(lines) > SPELLINGS / 2
    assert [line for line in lines if json.loads(line)["replica"]] == []


class Streams:
    """The right demo's streams, one after another."""

    def __init__(self, reached: Reached) -> None:
        self.texts: list[str] = []
        self.times: list[tuple[float, float]] = []
        self._reached, self._over = reached, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        path = "/roles/right-guard/v2/models/right-guard/generate_stream"
        with self._reached.http() as http:
            while not self._over.is_set():
                begun = time.monotonic()
                try:
                    text = http.post(path, json=STREAM).text
                except httpx.HTTPError as error:
                    text = repr(error)
                self.texts.append(text.strip())
                self.times.append((begun, time.monotonic()))

    def __enter__(self) -> Streams:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(120)

    def ran_at(self, moment: float) -> bool:
        """Whether one was under way then."""
        return any(begun < moment < ended for begun, ended in self.times)


def test_a_demo_goes_and_comes_while_the_other_notices_nothing(
    both: Both, workspace: Workspace, undisturbed: str
) -> None:
    moments = []
    with Streams(both.right) as streams, constant_load(both.right, sorted(RIGHT)) as load:
        until(lambda: load.served("right-twin") > 3, 60, "requests before")
        workspace.down("left")
        moments.append(time.monotonic())
        with both.left.http() as http:
            assert http.get("/v1/models").status_code == 401
        workspace.up("left")
        moments.append(time.monotonic())
        reached = Reached.of(workspace, "left", "base")
        with reached.http() as http:
            assert http.post("/v1/chat/completions", json=chat("left-scribe")).status_code == 200
        until(lambda: streams.times[-1][0] > moments[-1], 60, "a stream after it all")
    assert {text == undisturbed for text in streams.texts} == {True}
    assert [streams.ran_at(moment) for moment in moments] == [True, True]
    for role in RIGHT:
        assert load.failed(role) == []
        assert load.served(role) > 20


def test_a_key_is_exchanged_without_a_refusal(both: Both, workspace: Workspace) -> None:
    old = Reached.of(workspace, "left", "base")
    with constant_load(both.right, ["right-guard"]) as load:
        workspace.write_stack("left", left("default", "next"))
        workspace.up("left")
        status, said = workspace.berth("key", "next", "--stack", "left")
        assert status == 0, said
        new = replace(old, key=said.strip().splitlines()[-1])
        assert new.key != old.key
        for reached in (old, new):
            with reached.http() as http:
                answer = http.post("/v1/chat/completions", json=chat("left-scribe"))
                assert answer.status_code == 200
        with constant_load(new, ["left-scribe"]) as own:
            until(lambda: own.served("left-scribe") > 3, 60, "requests before")
            workspace.write_stack("left", left("next"))
            workspace.up("left")
            with old.http() as http:
                answer = http.post("/v1/chat/completions", json=chat("left-scribe"))
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
    assert load.failed("right-guard") == []
    assert own.failed("left-scribe") == []
    assert own.served("left-scribe") > 20
