"""The pack as the real engine runs it, on a program that does not judge its own plan."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.judging import RULES
from ops.environment import pulumi_environment
from tests.models.rules.plans import DIGEST, ROOT, WEIGHTS

pytestmark = pytest.mark.toolchain
PROGRAM = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
import pulumi
from components.resources.judged import of_plan
from components.resources.known import Known
from components.resources.stack import compose
from config.inventory import recorded
from config.project import load_plan
from config.pulumi_config import plain, sections
from config.releases import load_releases

here = Path.cwd()
plan = load_plan(here, pulumi.get_stack(), sections())
releases = load_releases(Path({str(ROOT)!r}))
known = Known(of_plan(plan, recorded(here, plan.hosts), releases, plain()))
compose(plan, here)
known.complete()
"""
GPUS = [f"GPU-00000000-0000-0000-0000-00000000000{number}" for number in range(8)]
NVIDIA = "nvcr.io/nvidia/tritonserver"
TRTLLM = f"{NVIDIA}:26.06-trtllm-python-py3@{DIGEST}"
NEW, OLD = (f"{NVIDIA}:{month}-vllm-python-py3@{DIGEST}" for month in ("26.06", "26.03"))


class Fleet:
    """One host of eight GPUs, with everything wrong that can be, or all of it right."""

    def __init__(self, wrong: bool) -> None:
        self._wrong = wrong

    def _one(self, wrong: Any, right: Any) -> Any:
        return wrong if self._wrong else right

    def sections(self) -> dict[str, Any]:
        gpus = [{"uuid": u, "index": n, "memory_mib": 23034} for n, u in enumerate(GPUS)]
        host = {
            "ssh": {
                "address": "192.0.2.1",
                "private_key_file": "id",
                "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF",
            },
            "gpu_access": "hook",
            "gpus": gpus,
            "restart": {"delay_s": 2, "burst": self._one(0, 10), "within_s": 300},
        }
        first = self._server(0, image=self._one(NEW.partition("@")[0], NEW))
        first |= {
            "listen": self._one("0.0.0.0", "127.0.0.1"),
            "environment": self._one({"HF_TOKEN": "opensesame"}, {"NCCL_DEBUG": "WARN"}),
            "mounts": [
                {
                    "source": self._one("/data/triton", "/data/cache"),
                    "target": "/cache",
                    "read_only": False,
                }
            ],
        }
        instances = {
            "triton@0": first,
            "triton@1": self._server(1) | {"http_port": self._one(8000, 8001)},
            "triton@wide": self._server(2, 3),
            "triton@4": self._server(4, image=self._one(OLD, NEW)),
            "triton@5": self._server(5),
            "triton@6": self._server(6, image=self._one(TRTLLM, NEW)),
        }
        roles = {
            "split": ("two", self._one("triton@1", "triton@wide")),
            "ray": ("mp", "triton@wide") if self._wrong else ("two", "triton@wide"),
            "kind": ("gpu", "triton@4"),
            "long": ("long", "triton@5"),
            "guard": ("plain", "triton@6"),
        }
        demo = {r: {"model": m, "instance": i} for r, (m, i) in roles.items()}
        return {
            "hosts": {"alpha": host},
            "instances": instances,
            "demo": {"name": "shop", "roles": demo},
            "inventory": "recorded",
        }

    def _server(self, *gpus: int, image: str = NEW) -> dict[str, Any]:
        return {
            "host": "alpha",
            "gpus": [GPUS[number] for number in gpus],
            "image": image,
            "http_port": 8000 + gpus[0],
            "metrics_port": 8100 + gpus[0],
        }

    def catalog(self) -> dict[str, dict[str, Any]]:
        kind = self._one("KIND_GPU", "KIND_MODEL")
        config = f'backend: "vllm"\ninstance_group [ {{ count: 1, kind: {kind} }} ]\n'
        plain = {"weights": "llama", "max_model_len": 4096, "gpu_memory_utilization": 0.9}
        return {
            "plain": plain,
            "two": plain | {"tensor_parallel_size": 2},
            "mp": plain | {"tensor_parallel_size": 2, "executor": self._one("mp", "ray")},
            "gpu": plain | {"weights": "gemma", "config_pbtxt": config},
            "long": plain | {"max_model_len": self._one(100_000_000, 4096)},
        }

    def inventory(self) -> dict[str, Any]:
        others = {
            "name": "berth/lab/toys.tiny/triton@9",
            "owner": "berth/lab/toys",
            "stack": "berth/lab",
            "demo": "toys",
            "roles": ["guard"],
            "gpus": [{"uuid": GPUS[6], "mib": 9000}],
        }
        gemma = WEIGHTS.model_copy(update={"config": WEIGHTS.config | {"model_type": "gemma4"}})
        there = GPUS[:7] if self._wrong else GPUS
        return {
            "host": "alpha",
            "schema_version": 1,
            "taken_at": "2026-01-01T00:00:00Z",
            "systemd": True,
            "driver": "610.43.02",
            "gpus": {
                "status": 0,
                "said": "",
                "found": [
                    {"uuid": u, "index": n, "name": "NVIDIA L4", "memory_mib": 23034,
                     "reserved_mib": 469, "used_mib": 0}
                    for n, u in enumerate(there)
                ],
            },
            "processes": [],
            "docker": {"installed": True, "version": "27.0", "said": "", "user_may": True,
                       "hook": True, "cdi": False, "containers": []},
            "ports": [22],
            "units": {},
            "weights": {"llama": WEIGHTS.model_dump(mode="json"),
                        "gemma": gemma.model_dump(mode="json")},
            "claims": self._one([others], []),
            "free_mib": 9000,
        }  # fmt: skip


@pytest.fixture
def preview(tmp_path: Path) -> Callable[[Fleet], tuple[int, str]]:
    """Previews a stack of its own, judged by the pack alone."""
    settings = f"{{name: python, options: {{toolchain: pip, virtualenv: {ROOT / '.venv'}}}}}"
    (tmp_path / "Pulumi.yaml").write_text(f"name: berth\nruntime: {settings}\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    (tmp_path / "id").write_text("no real key")
    for folder in ("state", "catalog", "inventory"):
        (tmp_path / folder).mkdir()
    environment = pulumi_environment(ROOT) | {
        "PULUMI_BACKEND_URL": f"file://{tmp_path / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("PULUMI_CONFIG_PASSPHRASE_FILE", None)

    def pulumi(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            ["pulumi", *words, "--non-interactive"],
            cwd=tmp_path,
            env=environment,
            text=True,
            capture_output=True,
            timeout=180,
            check=False,
        )
        return done.returncode, re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)

    status, said = pulumi("stack", "init", "test")
    assert status == 0, said

    def run(fleet: Fleet) -> tuple[int, str]:
        config = {f"berth:{key}": value for key, value in fleet.sections().items()}
        (tmp_path / "Pulumi.test.yaml").write_text(yaml.safe_dump({"config": config}))
        for name, entry in fleet.catalog().items():
            (tmp_path / "catalog" / f"{name}.yaml").write_text(yaml.safe_dump(entry))
        (tmp_path / "inventory/alpha.json").write_text(json.dumps(fleet.inventory()))
        return pulumi("preview", "--suppress-progress", "--policy-pack", str(ROOT / "policy"))

    return run


def test_all_rules_refuse_what_a_program_let_pass(
    preview: Callable[[Fleet], tuple[int, str]],
) -> None:
    status, said = preview(Fleet(wrong=True))
    assert status != 0
    assert "Traceback" not in said
    assert "can't run policy" not in said
    for rule in RULES:
        assert f"[mandatory]  {rule.NAME}  " in said, f"{rule.NAME}\n{said}"
    assert "berth/lab/toys: guard" in said
    assert f"GPU 7 ({GPUS[7]}) is not there" in said
    assert "first that can: Triton 26.06 (vLLM 0.22.1)" in said
    assert "opensesame" not in said


def test_the_same_program_put_right_passes(preview: Callable[[Fleet], tuple[int, str]]) -> None:
    status, said = preview(Fleet(wrong=False))
    assert status == 0, said
    assert "mandatory" not in said
    assert "can't run policy" not in said
