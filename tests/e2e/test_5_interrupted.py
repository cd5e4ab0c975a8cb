"""A run killed at any moment, and run again, ends where an undisturbed one ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.host import TestHost, until
from tests.e2e.workspace import Workspace, only, reference

STACK = "cut"
MODEL = "reference.gemma-4-e2b-it"


@pytest.fixture
def declared(workspace: Workspace, host: TestHost) -> Iterator[None]:
    sections = only(reference(host), "triton@0", "triton@1", guard=("gemma-4-e2b-it", "triton@0"))
    workspace.write_stack(STACK, sections)
    yield
    workspace.down(STACK)
    assert host.ours() == dict.fromkeys(host.ours(), "")
    assert host.gpu_mib() == [0, 0, 0, 0]


def container_made(host: TestHost) -> bool:
    return bool(host.sh("docker ps -aq --filter label=berth.instance"))


def unit_running(host: TestHost) -> bool:
    return "active" in host.sh("systemctl is-active triton@0 || true").split()


def memory_filling(host: TestHost) -> bool:
    return host.gpu_mib()[0] > 0


def host_set_up(host: TestHost) -> bool:
    return bool(host.sh("ls /etc/berth 2>/dev/null || true"))


MOMENTS = [host_set_up, container_made, unit_running, memory_filling]


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
def test_a_kill_at_any_moment_is_healed_by_the_next_run(
    workspace: Workspace, host: TestHost, moment: Callable[[TestHost], bool]
) -> None:
    run = workspace.start("up", STACK)
    until(lambda: moment(host), 120, moment.__name__)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    workspace.up(STACK)
    assert host.answers(8000, MODEL)
    assert len(host.sh("docker ps -aq --filter label=berth.instance").splitlines()) == 2
    assert "nothing to change" in workspace.up(STACK)


@pytest.mark.usefixtures("declared")
def test_ctrl_c_ends_a_run_in_time_and_the_next_one_completes_it(
    workspace: Workspace, host: TestHost
) -> None:
    run = workspace.start("up", STACK)
    until(lambda: container_made(host), 120, "a container")
    os.killpg(run.pid, signal.SIGINT)
    said, _ = run.communicate(timeout=90)
    assert run.returncode != 0
    assert "Traceback" not in said
    workspace.up(STACK)
    assert host.answers(8000, MODEL)


@pytest.mark.usefixtures("declared")
def test_a_kill_while_taking_down_is_healed_too(workspace: Workspace, host: TestHost) -> None:
    workspace.up(STACK)
    run = workspace.start("down", STACK)
    until(lambda: not unit_running(host), 120, "the unit's stop")
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    workspace.up(STACK)
    assert host.answers(8000, MODEL)
