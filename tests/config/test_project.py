"""The shipped files are plans; what is missing among them is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from config.project import load_plan
from models.refusal import Refusal

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for file in ROOT.glob("Pulumi.*.yaml"):
        shutil.copy(file, tmp_path)
    shutil.copytree(ROOT / "catalog", tmp_path / "catalog")
    return tmp_path


def test_dev_declares_the_reference_layout() -> None:
    plan = load_plan(ROOT, "dev")
    assert [(i.name, [g.index for g in i.gpus]) for i in plan.instances] == [
        ("triton@0", [0]),
        ("triton@1", [1]),
        ("triton@2", [2]),
        ("triton@3", [3]),
        ("triton@wide-01", [0, 1]),
    ]
    served = {role: (p.model, p.instance.name) for role, p in plan.roles.items()}
    assert served == {
        "architect": ("gemma-4-31b-it-nvfp4", "triton@wide-01"),
        "worker": ("gemma-4-31b-it-nvfp4", "triton@wide-01"),
        "auditor": ("gemma-4-e4b-it", "triton@2"),
        "sentry": ("gemma-4-e2b-it", "triton@3"),
    }


@pytest.mark.parametrize(
    "stack", sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))
)
def test_every_shipped_stack_is_a_plan(stack: str) -> None:
    assert load_plan(ROOT, stack).instances


def test_a_demo_stack_owns_no_host_and_uses_another_stacks_instances() -> None:
    plan = load_plan(ROOT, "frontdesk")
    assert not plan.owns_hosts
    assert plan.roles["greeter"].instance.host_name == "sandbox"


def test_a_host_stack_that_is_not_there_is_named_with_those_that_are(project: Path) -> None:
    file = project / "Pulumi.frontdesk.yaml"
    file.write_text(file.read_text().replace("host_stack: dev", "host_stack: prod"))
    with pytest.raises(Refusal, match="no config of a stack `prod`") as refused:
        load_plan(project, "frontdesk")
    assert "dev, frontdesk, xr7620" in str(refused.value)


def test_yaml_that_cannot_be_read_is_refused_with_its_line(project: Path) -> None:
    (project / "catalog/gemma-4-e2b-it.yaml").write_text("weights: [")
    with pytest.raises(Refusal, match="line 1") as refused:
        load_plan(project, "dev")
    assert "gemma-4-e2b-it.yaml" in str(refused.value)


def test_a_misspelt_catalog_key_is_refused_with_the_right_one(project: Path) -> None:
    file = project / "catalog/gemma-4-e2b-it.yaml"
    file.write_text(file.read_text().replace("max_model_len", "max_model_length"))
    with pytest.raises(Refusal, match="did you mean `max_model_len`") as refused:
        load_plan(project, "dev")
    assert "catalog/gemma-4-e2b-it.yaml: max_model_length" in str(refused.value)
