"""Some models cannot be loaded: they say why, the others serve, and a fix is all it takes."""

from __future__ import annotations

import pytest

from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace, only, reference

STACK = "some"
WEIGHTS = "/data/triton/weights"


@pytest.fixture
def torn_weights(host: TestHost) -> str:
    """A weights directory whose header is garbage."""
    name = "gemma-4-e4b-torn"
    host.sh(
        f"cp -r --sparse=always {WEIGHTS}/gemma-4-e4b-it {WEIGHTS}/{name};"
        f" for f in {WEIGHTS}/{name}/*.safetensors; do"
        f" printf 'garbage!' | dd of=$f conv=notrunc status=none; done"
    )
    return name


def test_two_fail_with_reasons_one_serves_and_fixes_converge(
    workspace: Workspace, host: TestHost, torn_weights: str
) -> None:
    entry = {"max_model_len": 4096, "gpu_memory_utilization": 0.9}
    workspace.write_model("torn", weights=torn_weights, **entry)
    misspelt = {"enforce_eagr": True}
    workspace.write_model("misspelt", weights="gemma-4-e2b-it", engine_args=misspelt, **entry)
    roles = {
        "healthy": ("gemma-4-e2b-it", "triton@0"),
        "torn": ("torn", "triton@1"),
        "typist": ("misspelt", "triton@2"),
    }
    sections = only(reference(host), "triton@0", "triton@1", "triton@2", **roles)
    workspace.write_stack(STACK, sections)
    try:
        status, said = workspace.berth("up", STACK)
        assert status != 0
        assert "Traceback" not in said
        reasons = said[said.index("Diagnostics:") :]
        assert "triton@1: reference.torn" in reasons
        assert "triton@2: reference.misspelt" in reasons
        assert "unexpected keyword argument 'enforce_eagr'" in reasons
        assert reasons.count("Fix: ") >= 2
        assert host.answers(8000, "reference.gemma-4-e2b-it")
        loads = host.loads("0")

        workspace.change_model("torn", weights="gemma-4-e4b-it")
        workspace.change_model("misspelt", engine_args={})
        workspace.up(STACK)
        assert host.answers(8001, "reference.torn")
        assert host.answers(8002, "reference.misspelt")
        assert host.loads("0") == loads
    finally:
        workspace.down(STACK)
        host.sh(f"rm -r {WEIGHTS}/{torn_weights}")


def test_weights_without_a_config_keep_only_their_own_model_down(
    workspace: Workspace, host: TestHost
) -> None:
    host.sh(f"mkdir -p {WEIGHTS}/empty")
    workspace.write_model("empty", weights="empty", max_model_len=4096)
    workspace.write_model("gone", weights="gone", max_model_len=4096)
    roles = {
        "empty": ("empty", "triton@0"),
        "gone": ("gone", "triton@1"),
        "healthy": ("gemma-4-e2b-it", "triton@2"),
    }
    sections = only(reference(host), "triton@0", "triton@1", "triton@2", **roles)
    workspace.write_stack(STACK, sections)
    try:
        status, said = workspace.berth("preview", STACK)
        assert status == 0, said
        at = "catalog/empty.yaml: weights: /data/triton/weights/empty"
        assert f"{at} cannot be used: no config.json" in said
        assert "catalog/gone.yaml: weights: no weights at /data/triton/weights/gone" in said
        status, said = workspace.berth("up", STACK)
        assert status != 0
        assert "Traceback" not in said
        assert host.answers(8002, "reference.gemma-4-e2b-it")
    finally:
        workspace.down(STACK)
        host.sh(f"rmdir {WEIGHTS}/empty")
