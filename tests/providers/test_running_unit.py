"""A unit as a resource, over a real sshd; `systemctl` there is a script that keeps a state file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pulumi.dynamic import CreateResult, ReadResult, UpdateResult

from components.providers.running_unit import RunningUnitProvider
from models.refusal import Refusal
from tests.providers.local_sshd import LocalSshd

SYSTEMCTL = """#!/bin/sh
cat {state}
"""
RUNNING = "ActiveState=active\nUnitFileState=enabled\n"
PROVIDER = RunningUnitProvider()


@pytest.fixture
def state(sshd: LocalSshd, tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "state"
    file.write_text("ActiveState=inactive\nUnitFileState=disabled\n")
    sshd.executable("systemctl", SYSTEMCTL.format(state=file))
    yield file
    (sshd.bin / "systemctl").unlink()


def declared(sshd: LocalSshd, script: str) -> dict[str, Any]:
    return {"ssh": sshd.ssh, "host": "alpha", "unit": "triton@0.service", "script": script}


def outs(result: CreateResult | ReadResult | UpdateResult) -> dict[str, Any]:
    assert result.outs is not None
    return result.outs


def test_a_stopped_unit_is_started_and_then_left_alone(sshd: LocalSshd, state: Path) -> None:
    props = declared(sshd, f"printf '{RUNNING}' > {state}; echo x >> {state}.runs")
    made = PROVIDER.create(props)
    assert (made.id, outs(made)["state"]) == ("alpha:triton@0.service", "active")
    PROVIDER.create(props)
    assert Path(f"{state}.runs").read_text() == "x\n"
    assert outs(PROVIDER.read(made.id, outs(made))) == outs(made)


@pytest.mark.parametrize(
    "said",
    [
        "ActiveState=inactive\nUnitFileState=enabled\n",
        "ActiveState=failed\nUnitFileState=enabled\n",
        "ActiveState=active\nUnitFileState=disabled\n",
        "",
    ],
)
def test_a_unit_that_is_stopped_failed_disabled_or_unknown_is_gone(
    sshd: LocalSshd, state: Path, said: str
) -> None:
    state.write_text(said)
    assert PROVIDER.read("id", declared(sshd, "true") | {"state": "active"}).id == ""


def test_a_unit_that_restarts_just_now_is_not_gone(sshd: LocalSshd, state: Path) -> None:
    state.write_text("ActiveState=activating\nUnitFileState=enabled\n")
    assert outs(PROVIDER.read("id", declared(sshd, "true")))["state"] == "active"


def test_a_unit_that_does_not_start_is_refused_with_what_was_said(
    sshd: LocalSshd, state: Path
) -> None:
    del state
    with pytest.raises(Refusal) as refused:
        PROVIDER.create(declared(sshd, "echo 'Unit not found' >&2; exit 5"))
    assert "triton@0.service does not start, it is disabled: Unit not found" in str(refused.value)
    assert "journalctl -u triton@0.service" in str(refused.value)


def test_another_script_is_noted_and_another_unit_is_another_resource(sshd: LocalSshd) -> None:
    props = declared(sshd, "true") | {"state": "active"}
    assert not PROVIDER.diff("id", props, declared(sshd, "true")).changes
    noted = PROVIDER.diff("id", props, declared(sshd, "false"))
    assert (noted.changes, noted.replaces) == (True, [])
    moved = PROVIDER.diff("id", props, declared(sshd, "true") | {"unit": "triton@1.service"})
    assert moved.replaces == ["unit"]
    assert outs(PROVIDER.update("id", props, declared(sshd, "false")))["script"] == "false"
