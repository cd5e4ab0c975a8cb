"""A role on two instances: one may go, by hand or by a line, and the other goes on.

The tests of this file are one story for each engine and build on each other.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.e2e.clients import Reached, status
from tests.e2e.constant_load import constant_load
from tests.e2e.host import TestHost, until
from tests.e2e.workspace import Workspace, reachable

STACK = "replicas"
ROLE, MODEL = "sentry", "gemma-4-e2b-it"
CHECK_S = 3.0
"""Within this the gateway's checks have seen that a replica is gone: one a second, and its wait."""
LONG = {"max_tokens": 1800, "ignore_eos": True}
"""An answer that takes 18 s and more, less than is waited for one."""


@dataclass(frozen=True)
class Under:
    """An engine, and what its two replicas are."""

    engine: str
    units: tuple[str, str]
    metrics: tuple[int, int]
    """Ports."""
    stop: str
    """How the second is ended by hand."""
    returns: bool
    """Whether that comes back by itself."""


TRITON = Under(
    "triton-vllm",
    ("triton@2.service", "triton@3.service"),
    (8102, 8103),
    "systemctl stop --no-block triton@3",
    returns=False,
)
VLLM = Under(
    "vllm",
    ("reference-sentry.service", "reference-sentry-3.service"),
    (8202, 8203),
    "docker kill $(docker ps -q --filter label=berth.instance=reference-sentry-3)",
    returns=True,
)


def sections(host: TestHost, engine: str, *further: str) -> dict[str, Any]:
    """Sentry on triton@2 and on these."""
    made = reachable(host, "triton@2", "triton@3", sentry=(MODEL, "triton@2"))
    made["demo"]["roles"][ROLE] |= {"engine": engine, "replicas": list(further)}
    return made


@dataclass(frozen=True)
class Served:
    """The role under an engine."""

    under: Under
    reached: Reached


@pytest.fixture(scope="module", params=[TRITON, VLLM], ids=lambda under: under.engine)
def served(
    request: pytest.FixtureRequest, workspace: Workspace, host: TestHost
) -> Iterator[Served]:
    under: Under = request.param
    workspace.write_stack(STACK, sections(host, under.engine, "triton@3"))
    workspace.up(STACK)
    yield Served(under, Reached.of(workspace, STACK))
    if under is VLLM:
        workspace.down(STACK)


def replicas(host: TestHost) -> dict[str, dict[str, Any]]:
    """Unit → what the gateway says of the replica that clients of OpenAI's API get."""
    role = status(host)["demos"]["reference"][ROLE]
    return {each["unit"]: each for each in role["replicas"] if each["api"] == "openai"}


def well(host: TestHost) -> set[str]:
    return {unit for unit, each in replicas(host).items() if not each["trouble"]}


def tokens(host: TestHost, port: int) -> float:
    """How many tokens an engine has made, as its own metrics say."""
    said = host.sh(f"curl -s -m 10 127.0.0.1:{port}/metrics || true")
    counts = [line for line in said.splitlines() if line.startswith("vllm:generation_tokens_total")]
    return sum(float(line.rpartition(" ")[2]) for line in counts)


def test_outputs_and_status_show_both(served: Served, workspace: Workspace) -> None:
    role = workspace.outputs(STACK)["roles"][ROLE]
    told = [(each["unit"], each["state"]) for each in role["replicas"]]
    assert told == [(unit, "READY") for unit in served.under.units]
    code, said = workspace.berth("status", STACK)
    assert code == 0, said
    roles = said[said.index("Roles") :]
    for unit in served.under.units:
        assert unit.removesuffix(".service") + " " in roles


def test_both_are_asked_alike(served: Served, host: TestHost) -> None:
    before = [tokens(host, port) for port in served.under.metrics]
    with constant_load(served.reached, [ROLE] * 3) as load:
        until(lambda: load.served(ROLE) > 60, 60, "requests")
    assert load.failed(ROLE) == []
    after = [tokens(host, port) for port in served.under.metrics]
    one, two = (new - old for new, old in zip(after, before, strict=True))
    assert 0.5 < one / two < 2


def test_one_that_is_ended_by_hand_gets_nothing_more_until_it_is_well(
    served: Served, host: TestHost, workspace: Workspace
) -> None:
    under = served.under
    with constant_load(served.reached, [ROLE] * 3) as load:
        until(lambda: load.served(ROLE) > 20, 60, "requests before")
        ended = time.monotonic()
        host.sh(under.stop)
        until(lambda: well(host) == {under.units[0]}, 10, "the check has failed")
        noticed = time.monotonic()
        count = len(load.requests)
        until(lambda: len(load.requests) > count + 20, 60, "requests without it")
        if under.returns:
            until(lambda: len(well(host)) == 2, 90, "it is back by itself")
        else:
            state = f"systemctl is-active {under.units[1]} || true"
            until(lambda: host.sh(state) in ("inactive", "failed"), 60, "it has ended")
            assert well(host) == {under.units[0]}
            workspace.up(STACK)
            assert len(well(host)) == 2
        count, before = len(load.requests), tokens(host, under.metrics[1])
        until(lambda: len(load.requests) > count + 20, 60, "requests with it again")
    assert tokens(host, under.metrics[1]) > before
    assert len(load.failed(ROLE)) <= 6, "more than were under way"
    for request in load.failed(ROLE):
        assert request.begun < ended + CHECK_S, request
    assert noticed - ended < CHECK_S + 2


def test_one_that_is_dropped_by_a_line_takes_no_answer_with_it(
    served: Served, host: TestHost, workspace: Workspace
) -> None:
    under = served.under
    with constant_load(served.reached, [ROLE] * 2) as load:
        until(lambda: load.served(ROLE) > 10, 60, "requests before")
        workspace.write_stack(STACK, sections(host, under.engine))
        answers = LongAnswers(served, 2)
        workspace.up(STACK)
        count = load.served(ROLE)
        until(lambda: load.served(ROLE) > count + 10, 60, "requests after")
    assert load.failed(ROLE) == []
    assert answers.trouble() == []
    assert [*replicas(host)] == [under.units[0]]
    assert host.gpu_mib()[3] == 0
    role = workspace.outputs(STACK)["roles"][ROLE]
    assert [each["unit"] for each in role["replicas"]] == [under.units[0]]
    code, said = workspace.berth("status", STACK)
    assert code == 0, said


def test_one_that_is_added_by_a_line_costs_nobody_an_answer(
    served: Served, host: TestHost, workspace: Workspace
) -> None:
    under = served.under
    with constant_load(served.reached, [ROLE] * 2) as load:
        until(lambda: load.served(ROLE) > 10, 60, "requests before")
        workspace.write_stack(STACK, sections(host, under.engine, "triton@3"))
        workspace.up(STACK)
        until(lambda: well(host) == {*under.units}, 10, "both are well")
        count = tokens(host, under.metrics[1])
        until(lambda: tokens(host, under.metrics[1]) > count, 60, "requests to the new one")
    assert load.failed(ROLE) == []


class LongAnswers:
    """Streams that are under way for a long time, each at another replica."""

    def __init__(self, served: Served, number: int) -> None:
        self._served = served
        self._said: list[str] = []
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(number)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        if self._served.under is VLLM:
            path = "/v1/completions"
            body: dict[str, Any] = {"model": ROLE, "prompt": "The sea", "stream": True} | LONG
        else:
            path = f"/roles/{ROLE}/v2/models/{ROLE}/generate_stream"
            sampling = json.dumps(LONG)
            body = {"text_input": "The sea", "stream": True, "sampling_parameters": sampling}
        with self._served.reached.http() as http:
            try:
                self._said.append(http.post(path, json=body).text)
            except httpx.HTTPError as error:
                self._said.append(repr(error))

    def trouble(self) -> list[str]:
        """The ends of those that are not whole."""
        for thread in self._threads:
            thread.join(100)
        assert len(self._said) == len(self._threads)
        number = LONG["max_tokens"]
        return [
            text[-300:]
            for text in self._said
            if '"error"' in text or not number <= text.count("data: ") <= number + 3
        ]
