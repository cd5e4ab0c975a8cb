"""Pulumi writes its salt into a copy, never into the declared file."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.refusal import Refusal
from ops import config_file

DECLARED = "# words\nconfig:\n  berth:host_stack: dev\n"
SALT = "encryptionsalt: v1:abc="


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(DECLARED)
    return tmp_path


def test_the_copy_is_the_declared_file_with_the_salt(project: Path) -> None:
    copy = config_file.scratch(project) / "Pulumi.dev.yaml"
    copy.write_text(f"{SALT}\n")
    assert config_file.arguments(project, "dev") == ["--config-file", str(copy)]
    assert copy.read_text() == f"{DECLARED}{SALT}\n"
    (project / "Pulumi.dev.yaml").write_text("config: {}\n")
    config_file.arguments(project, "dev")
    assert copy.read_text() == f"config: {{}}\n{SALT}\n"
    assert "encryptionsalt" not in (project / "Pulumi.dev.yaml").read_text()


@pytest.mark.parametrize("key", ["encryptionsalt: v1:x", "secretsprovider: awskms://k"])
def test_a_file_that_keeps_its_secrets_itself_is_used_as_it_is(project: Path, key: str) -> None:
    (config_file.scratch(project) / "Pulumi.dev.yaml").write_text(f"{SALT}\n")
    (project / "Pulumi.dev.yaml").write_text(f"{DECLARED}{key}\n")
    assert config_file.arguments(project, "dev") == []


def test_a_stack_without_a_file_is_refused_with_those_that_have_one(project: Path) -> None:
    with pytest.raises(Refusal, match=r"Pulumi\.prod\.yaml is not there") as refused:
        config_file.arguments(project, "prod")
    assert "dev" in refused.value.fix
