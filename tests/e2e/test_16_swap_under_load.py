"""A role goes from Triton to vLLM and back while clients ask all the time.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.clients import Reached
from tests.e2e.constant_load import ConstantLoad, constant_load
from tests.e2e.host import TestHost, until
from tests.e2e.workspace import Workspace, reachable

STACK = "swap"
ARCHITECT, OTHERS = "architect", ("auditor", "sentry")
UNIT = "reference-architect.service"


def sections(host: TestHost, engine: str | None) -> dict[str, Any]:
    """The reference layout with its gateway; Architect under an engine."""
    made = reachable(
        host,
        "triton@2",
        "triton@3",
        "triton@wide-01",
        architect=("gemma-4-31b-it-nvfp4", "triton@wide-01"),
        auditor=("gemma-4-e4b-it", "triton@2"),
        sentry=("gemma-4-e2b-it", "triton@3"),
    )
    if engine:
        made["demo"]["roles"]["architect"]["engine"] = engine
    return made


@pytest.fixture(scope="module")
def reached(workspace: Workspace, host: TestHost) -> Iterator[Reached]:
    workspace.write_stack(STACK, sections(host, None))
    workspace.up(STACK)
    yield Reached.of(workspace, STACK)
    workspace.down(STACK)


@pytest.mark.parametrize("engine", ["vllm", None])
def test_only_the_role_itself_is_refused_and_told_when_to_come_back(
    workspace: Workspace, host: TestHost, reached: Reached, engine: str | None
) -> None:
    with constant_load(reached, (ARCHITECT, *OTHERS)) as load:
        until(lambda: load.served(ARCHITECT) > 3, 60, "requests before")
        workspace.write_stack(STACK, sections(host, engine))
        workspace.up(STACK)
        before = load.served(ARCHITECT)
        until(lambda: load.served(ARCHITECT) > before + 3, 60, "requests after")
    for role in OTHERS:
        assert load.failed(role) == []
        assert load.served(role) > 10
    assert load.failed(ARCHITECT)
    for request in load.failed(ARCHITECT):
        assert (request.status, request.retry_after) == (503, "10"), request
        assert "its model is being replaced" in request.said
    _once(load)
    active = host.sh(f"systemctl is-active {UNIT} || true")
    assert active == ("active" if engine else "inactive")


def _once(load: ConstantLoad) -> None:
    """Refused in one stretch: nobody was served in between, by the old or by half a new one."""
    failed = load.failed(ARCHITECT)
    first, last = failed[0].begun, failed[-1].begun
    between = [each for each in load.of(ARCHITECT) if not each.said and first < each.begun < last]
    assert between == []
