"""The shipped stacks, and a host that could be theirs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from models.inventory import Inventory
from models.plan import Plan
from tests.models.rules.plans import ROOT, WEIGHTS

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The shipped stacks, with key files that the sandbox would make."""
    for file in (*ROOT.glob("Pulumi.*.yaml"), ROOT / "Pulumi.yaml"):
        shutil.copy(file, tmp_path)
    shutil.copytree(ROOT / "catalog", tmp_path / "catalog")
    (tmp_path / ".berth/sandbox").mkdir(parents=True)
    (tmp_path / ".berth/sandbox/id_ed25519").write_text("no real key")
    (tmp_path / ".berth/sandbox/host_key.pub").write_text(KEY)
    return tmp_path


def inventory(plan: Plan) -> dict[str, Inventory]:
    """What the sandbox host could say of itself: a foreign process, and another stack's claim."""
    uuids = [gpu.uuid for gpu in plan.hosts["sandbox"].gpus]
    said = {
        "taken_at": "2026-01-01T00:00:00Z",
        "systemd": True,
        "driver": "580.95.05",
        "gpus": {
            "status": 0,
            "said": "",
            "found": [
                {"uuid": uuid, "index": n, "name": "NVIDIA L4", "memory_mib": 23034,
                 "reserved_mib": 469, "used_mib": 0}
                for n, uuid in enumerate(uuids)
            ],
        },
        "processes": [{"gpu": uuids[3], "pid": 77, "name": "python3", "mib": 900}],
        "docker": {
            "installed": True, "version": "27.0", "said": "", "user_may": True, "hook": True,
            "cdi": False,
            "containers": [
                {"name": "triton-9-1a", "instance": "triton@9", "stack": "lab",
                 "ports": [{"address": "127.0.0.1", "port": 8009, "inside": 8000}]}
            ],
        },
        "ports": [22, 8009],
        "units": {},
        "weights": {
            name: WEIGHTS.model_dump(mode="json")
            for name in ("gemma-4-31b-it-nvfp4", "gemma-4-e4b-it", "gemma-4-e2b-it")
        },
        "claims": [
            {"name": "berth/lab/toys.x/triton@3", "owner": "berth/lab/toys", "stack": "berth/lab",
             "demo": "toys", "roles": ["guard"], "gpus": [{"uuid": uuids[3], "mib": 100}]},
            {"name": "berth/dev/reference.y/triton@2", "owner": "berth/dev/reference",
             "stack": "berth/dev", "gpus": [{"uuid": uuids[2], "mib": 100}]},
        ],
        "free_mib": 1000,
    }  # fmt: skip
    return {"sandbox": Inventory.model_validate(said)}
