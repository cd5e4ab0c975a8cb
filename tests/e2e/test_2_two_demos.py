"""Two demos on a host that a third stack set up: none of them notices the others.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace, only, reference

pytestmark = pytest.mark.usefixtures("both_up")
LEFT, RIGHT = "left.gemma-4-e2b-it", "right.gemma-4-e2b-it"


def demo(name: str, instance: str) -> dict[str, Any]:
    role = {"model": "gemma-4-e2b-it", "instance": instance}
    return {"host_stack": "base", "demo": {"name": name, "roles": {f"{name}-guard": role}}}


@pytest.fixture(scope="module")
def both_up(workspace: Workspace, host: TestHost) -> Iterator[None]:
    sections = reference(host)
    workspace.write_stack("base", only(sections, "triton@0", "triton@1"))
    workspace.write_stack("left", demo("left", "triton@0"))
    workspace.write_stack("right", demo("right", "triton@1"))
    for stack in ("base", "left", "right"):
        workspace.up(stack)
    yield
    for stack in ("left", "right", "base"):
        workspace.down(stack)


def of_the_host(host: TestHost) -> str:
    """Container ids and start times, unit start times."""
    return host.sh(
        "docker inspect -f '{{.Id}} {{.State.StartedAt}} {{.State.Pid}}'"
        " $(docker ps -q --filter label=berth.instance) | sort;"
        " systemctl show -p ActiveEnterTimestampMonotonic triton@0 triton@1"
    )


def test_the_same_model_serves_two_demos_on_two_instances(host: TestHost) -> None:
    assert host.answers(8000, LEFT)
    assert host.answers(8001, RIGHT)


def test_a_demo_stack_owns_no_container(workspace: Workspace) -> None:
    assert workspace.outputs("left")["instances"] == {}
    assert workspace.outputs("left")["roles"]["left-guard"]["instance"] == "triton@0"
    assert "docker:index" not in workspace.state("left")


def test_a_host_stack_that_demos_stand_on_is_not_taken_down(
    workspace: Workspace, host: TestHost
) -> None:
    before = of_the_host(host)
    status, said = workspace.berth("down", "base")
    assert status != 0
    assert LEFT in said
    assert RIGHT in said
    assert "Traceback" not in said
    assert host.answers(8000, LEFT)
    assert of_the_host(host) == before


def test_repeated_lifecycles_of_one_leave_the_other_and_no_trace(
    workspace: Workspace, host: TestHost
) -> None:
    before, loads = of_the_host(host), host.loads("1")
    for _ in range(2):
        workspace.down("left")
        assert host.gpu_mib()[0] == 0
        assert host.sh("ls /data/triton/models") == RIGHT
        assert host.answers(8001, RIGHT)
        workspace.up("left")
    workspace.down("left")
    assert of_the_host(host) == before
    assert host.loads("1") == loads


def test_an_entry_of_somebody_else_is_never_overwritten(
    workspace: Workspace, host: TestHost
) -> None:
    entry = f"/data/triton/models/{LEFT}"
    host.sh(f"mkdir {entry}; echo mine > {entry}/config.pbtxt")
    try:
        status, said = workspace.berth("up", "left")
        assert status != 0
        assert LEFT in said
        assert "Traceback" not in said
        assert host.sh(f"cat {entry}/config.pbtxt") == "mine"
    finally:
        host.sh(f"rm -r {entry}")
