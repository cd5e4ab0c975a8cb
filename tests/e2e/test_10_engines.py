"""A role changes its engine by one line, and nobody else notices.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from models.engine import BATCHER_PARTS, part_name
from tests.e2e.built_engines import lay_out
from tests.e2e.host import TestHost, until
from tests.e2e.workspace import Workspace, only, reference

STACK = "engines"
AUDITOR, SENTRY = "gemma-4-e4b-it", "gemma-4-e2b-it"
ENTRY = f"reference.{AUDITOR}"
PORT = 8202
UNIT = "reference-auditor.service"


def sections(host: TestHost, engine: str | None, **role: Any) -> dict[str, Any]:
    """Auditor under an engine, Sentry in Triton beside it."""
    roles = {"auditor": (AUDITOR, "triton@2"), "sentry": (SENTRY, "triton@3")}
    made = only(reference(host), "triton@2", "triton@3", **roles)
    if engine:
        made["demo"]["roles"]["auditor"] |= {"engine": engine}
    made["demo"]["roles"]["auditor"] |= role
    return made


def listed(host: TestHost) -> list[str]:
    """Names that the server of Auditor's own gives its model, and what else it holds."""
    said = json.loads(host.sh(f"curl -s -m 10 http://127.0.0.1:{PORT}/v1/models"))
    return sorted(model["id"] for model in said["data"])


@pytest.fixture(scope="module")
def in_triton(workspace: Workspace, host: TestHost) -> Iterator[None]:
    lay_out(workspace, host, AUDITOR)
    workspace.write_stack(STACK, sections(host, None))
    workspace.up(STACK)
    yield
    workspace.down(STACK)


@pytest.mark.usefixtures("in_triton")
@pytest.mark.parametrize(
    ("engine", "names"),
    [
        ("vllm", ["auditor"]),
        ("trtllm-serve", [AUDITOR]),
        ("triton-openai-batcher", [*(part_name(ENTRY, part) for part in BATCHER_PARTS), ENTRY]),
        ("triton-openai", [ENTRY]),
    ],
)
def test_one_line_puts_a_role_under_another_engine(
    workspace: Workspace, host: TestHost, engine: str, names: list[str]
) -> None:
    loads = host.loads("3")
    workspace.write_stack(STACK, sections(host, engine))
    workspace.up(STACK)
    assert listed(host) == sorted(names)
    role = workspace.outputs(STACK)["roles"]["auditor"]
    assert (role["engine"], role["unit"], role["state"]) == (engine, UNIT, "READY")
    status, said = workspace.berth("ask", "auditor", "Who are you?", "--stack", STACK)
    assert status == 0, said
    assert AUDITOR in said
    assert host.loads("3") == loads
    assert "nothing to change" in workspace.up(STACK)


@pytest.mark.usefixtures("in_triton")
def test_after_a_power_cut_it_serves_again_without_an_operator(host: TestHost) -> None:
    host.sandbox("power-cut", "--name", host.name)
    until(lambda: host.sh(f"systemctl is-active {UNIT} || true") == "active", 120, UNIT)
    until(lambda: '"id"' in host.sh(f"curl -s -m 5 127.0.0.1:{PORT}/v1/models || true"), 60, UNIT)


@pytest.mark.usefixtures("in_triton")
def test_a_unit_that_was_stopped_by_hand_shows_and_comes_back(
    workspace: Workspace, host: TestHost
) -> None:
    workspace.write_stack(STACK, sections(host, "vllm"))
    workspace.up(STACK)
    host.sh(f"systemctl stop {UNIT}")
    status, said = workspace.pulumi("preview", "--stack", STACK, "--expect-no-changes")
    assert status != 0, said
    workspace.up(STACK)
    assert listed(host) == ["auditor"]


@pytest.mark.usefixtures("in_triton")
def test_one_that_fails_says_why_and_does_not_start_over_and_over(
    workspace: Workspace, host: TestHost
) -> None:
    workspace.change_model(AUDITOR, engine_args={"no_such_flag": 1})
    workspace.write_stack(STACK, sections(host, "vllm"))
    try:
        status, said = workspace.berth("up", STACK)
    finally:
        workspace.restore_model(AUDITOR)
    assert status != 0
    assert "no-such-flag" in said
    assert "Traceback" not in said
    assert host.sh(f"systemctl is-active {UNIT} || true") in ("inactive", "failed")
    assert host.gpu_mib()[2] == 0
    assert host.answers(8003, f"reference.{SENTRY}")


@pytest.mark.usefixtures("in_triton")
def test_back_in_triton_nothing_of_its_own_server_is_left(
    workspace: Workspace, host: TestHost
) -> None:
    workspace.write_stack(STACK, sections(host, None))
    workspace.up(STACK)
    assert host.answers(8002, f"reference.{AUDITOR}")
    assert host.sh("ls /etc/berth/servers") == ""
    assert host.sh("ls /etc/systemd/system | grep reference || true") == ""
    assert host.sh("docker ps -aq --filter label=berth.role") == ""
