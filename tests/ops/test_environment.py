"""Where `berth` finds its project and what it gives to Pulumi."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.refusal import Refusal
from ops.environment import PROJECT, project_directory, pulumi_environment

ENV = """\
# Written by tools/setup
PATH=/built/bin:/project/.venv/bin:$PATH
PULUMI_BACKEND_URL=file:///project/.berth/state
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / ".berth").mkdir()
    (tmp_path / ".berth/env").write_text(ENV)
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    return tmp_path


def test_the_project_is_found_from_a_directory_below_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "docs").mkdir()
    monkeypatch.chdir(project / "docs")
    assert project_directory() == project


def test_elsewhere_it_is_the_checkout_that_the_command_belongs_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert project_directory() == PROJECT


def test_what_set_up_chose_is_used(project: Path) -> None:
    environment = pulumi_environment(project)
    assert environment["PATH"] == "/built/bin:/project/.venv/bin:/usr/bin"
    assert environment["PULUMI_BACKEND_URL"] == "file:///project/.berth/state"


def test_what_the_caller_chose_is_left_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://team")
    assert pulumi_environment(project)["PULUMI_BACKEND_URL"] == "s3://team"


def test_a_checkout_that_is_not_set_up_is_refused(project: Path) -> None:
    (project / ".berth/env").unlink()
    with pytest.raises(Refusal, match="not set up") as refused:
        pulumi_environment(project)
    assert "tools/setup" in refused.value.fix
