"""The pack as the real engine runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ops.environment import pulumi_environment

pytestmark = pytest.mark.toolchain
ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from components.providers.triton_model import TritonModel

for name, gpus in {models!r}.items():
    TritonModel(
        name, ssh={{}}, host="alpha", instance="triton@0", unit="triton@0.service", http_port=8000,
        control_key_file="/k", model=name, config_digest="d", entry_revision="r", container_id="c",
        gpus=gpus, claim_mib=20730, owner="test: " + name, load_timeout_s=1, unload_timeout_s=1,
        canary_timeout_s=1,
    )
"""


def preview(folder: Path, models: dict[str, list[str]]) -> tuple[int, str]:
    """Preview a program that declares these models, judged by the pack."""
    (folder / "Pulumi.yaml").write_text(
        "name: judged\n"
        f"runtime: {{name: python, options: {{toolchain: pip, virtualenv: {ROOT / '.venv'}}}}}\n"
    )
    (folder / "__main__.py").write_text(PROGRAM.format(root=str(ROOT), models=models))
    (folder / "state").mkdir()
    environment = pulumi_environment(ROOT) | {
        "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("PULUMI_CONFIG_PASSPHRASE_FILE", None)

    def pulumi(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["pulumi", *words, "--non-interactive"],
            cwd=folder,
            env=environment,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
        )

    assert pulumi("stack", "init", "test").returncode == 0
    done = pulumi("preview", "--policy-pack", str(ROOT / "policy"))
    return done.returncode, done.stdout + done.stderr


def test_an_overlap_fails_the_preview_and_names_both_owners(tmp_path: Path) -> None:
    status, said = preview(tmp_path, {"one": ["GPU-0", "GPU-1"], "other": ["GPU-1"]})
    assert status != 0
    assert "gpu-overlap" in said
    assert "GPU-1 is claimed by test: one: 20730 MiB and by test: other: 20730 MiB" in said
    assert "Fix: " in said


def test_models_apart_pass(tmp_path: Path) -> None:
    status, said = preview(tmp_path, {"one": ["GPU-0"], "other": ["GPU-1"]})
    assert status == 0, said
