"""TensorRT-LLM inside Triton: a role comes up on it, answers, leaves nothing, goes by one line.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.built_engines import PLACE, lay_out
from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace, only, reference

STACK = "trtllm"
AUDITOR, SENTRY = "gemma-4-e4b-it", "gemma-4-e2b-it"
ENTRY = f"reference.{AUDITOR}"
GPU = 2
LLMAPI, BATCHER, VLLM = "triton-llmapi", "triton-batcher", "triton-vllm"
PARTS = [f"reference._{part}.{AUDITOR}" for part in ("postprocessing", "preprocessing")]
PARTS.append(f"reference._tensorrt_llm.{AUDITOR}")


def sections(host: TestHost, engine: str, *, demo: bool = True) -> dict[str, Any]:
    """Auditor under an engine, Sentry under vLLM beside it."""
    roles = {"auditor": (AUDITOR, "triton@2"), "sentry": (SENTRY, "triton@3")}
    made = only(reference(host), "triton@2", "triton@3", **(roles if demo else {}))
    if demo:
        made["demo"]["roles"]["auditor"] |= {"engine": engine}
    return made


def up(workspace: Workspace, host: TestHost, engine: str) -> None:
    """Bring the stack up with Auditor under an engine."""
    workspace.write_stack(STACK, sections(host, engine))
    workspace.up(STACK)


def entries(host: TestHost) -> list[str]:
    """The repository's entries for Auditor."""
    return host.sh("ls /data/triton/models | grep e4b || true").splitlines()


def loaded(host: TestHost) -> list[str]:
    """Models that Auditor's server holds or is busy with."""
    said = json.loads(host.control("2", 8002, "/v2/repository/index"))
    return sorted(row["name"] for row in said if row.get("state") in ("READY", "UNLOADING"))


@pytest.fixture(scope="module")
def built(workspace: Workspace, host: TestHost) -> None:
    lay_out(workspace, host, AUDITOR)


@pytest.fixture(scope="module")
def on_vllm(workspace: Workspace, host: TestHost, built: None) -> Iterator[None]:  # noqa: ARG001
    up(workspace, host, VLLM)
    yield
    workspace.down(STACK)


@pytest.mark.usefixtures("on_vllm")
@pytest.mark.parametrize("engine", [LLMAPI, BATCHER, VLLM])
def test_one_line_puts_a_role_under_another_of_tritons_engines(
    workspace: Workspace, host: TestHost, engine: str
) -> None:
    loads = host.loads("3")
    up(workspace, host, engine)
    role = workspace.outputs(STACK)["roles"]["auditor"]
    assert (role["engine"], role["unit"], role["state"]) == (engine, "triton@2.service", "READY")
    status, said = workspace.berth("ask", "auditor", "Who are you?", "--stack", STACK)
    assert status == 0, said
    assert AUDITOR in said
    parts = PARTS if engine == BATCHER else []
    assert loaded(host) == sorted([ENTRY, *parts])
    assert sorted(entries(host)) == sorted([ENTRY, *parts])
    assert host.loads("3") == loads
    assert "nothing to change" in workspace.up(STACK)


@pytest.mark.usefixtures("on_vllm")
@pytest.mark.parametrize("engine", [LLMAPI, BATCHER])
def test_a_demo_that_goes_gives_all_memory_back(
    workspace: Workspace, host: TestHost, engine: str
) -> None:
    up(workspace, host, engine)
    assert host.gpu_mib()[GPU] > 2000
    workspace.write_stack(STACK, sections(host, engine, demo=False))
    workspace.up(STACK)
    assert host.gpu_mib()[GPU] == 0
    assert loaded(host) == []
    assert entries(host) == []


@pytest.mark.usefixtures("on_vllm")
def test_a_demo_goes_although_triton_keeps_requests_whose_clients_went(
    workspace: Workspace, host: TestHost
) -> None:
    """It does so of an ensemble now and then, so that it is not sure to happen here; what is done
    then is seen for certain in tests/triton/test_unloading.py."""
    workspace.change_model(AUDITOR, unload_timeout_s=5)
    up(workspace, host, BATCHER)
    url = f"http://127.0.0.1:8002/v2/models/{ENTRY}/generate_stream"
    asked = json.dumps({"text_input": "Tell me of quay N", "max_tokens": 200, "stream": True})
    host.sh(f"for n in $(seq 40); do curl -sN -m 0.4 {url} -d '{asked}' || true; done")
    workspace.write_stack(STACK, sections(host, BATCHER, demo=False))
    workspace.up(STACK)
    workspace.change_model(AUDITOR, unload_timeout_s=120)
    assert host.gpu_mib()[GPU] == 0
    assert loaded(host) == []


@pytest.mark.usefixtures("on_vllm")
def test_a_part_that_was_unloaded_by_hand_shows_and_comes_back(
    workspace: Workspace, host: TestHost
) -> None:
    up(workspace, host, BATCHER)
    host.control("2", 8002, f"/v2/repository/models/{PARTS[-1]}/unload")
    status, said = workspace.pulumi("preview", "--stack", STACK, "--expect-no-changes")
    assert status != 0, said
    workspace.up(STACK)
    assert loaded(host) == sorted([ENTRY, *PARTS])


@pytest.mark.usefixtures("on_vllm")
def test_engines_that_are_not_whole_are_told_and_nothing_stays_loaded(
    workspace: Workspace, host: TestHost
) -> None:
    up(workspace, host, VLLM)
    place = f"{PLACE}/rank0.engine"
    host.sh(f"mv {place} {place}.away")
    try:
        workspace.write_stack(STACK, sections(host, BATCHER))
        status, said = workspace.berth("up", STACK)
    finally:
        host.sh(f"mv {place}.away {place}")
    assert status != 0
    assert "prebuilt engines are not there" in said
    assert "Traceback" not in said
    assert host.gpu_mib()[GPU] == 0
    assert host.answers(8003, f"reference.{SENTRY}")


@pytest.mark.usefixtures("on_vllm")
def test_an_image_without_the_engine_is_refused_at_preview(
    workspace: Workspace, host: TestHost
) -> None:
    made = sections(host, LLMAPI)
    made["instances"]["triton@2"]["image"] = "nvcr.io/nvidia/tritonserver:26.06-vllm-python-py3"
    workspace.write_stack(STACK, made)
    status, said = workspace.berth("preview", STACK)
    assert status != 0
    assert "holds vLLM 0.22.1 and no TensorRT-LLM" in said
