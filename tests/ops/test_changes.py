"""Whether a preview found anything to do, from the engine's event log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ops.changes import would_change

STACK = "pulumi:pulumi:Stack"


def log(folder: Path, *events: dict[str, Any]) -> Path:
    file = folder / "events.json"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    return file


def summary(**changes: int) -> dict[str, Any]:
    return {"summaryEvent": {"resourceChanges": changes}}


def outputs(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    metadata = {"type": STACK, "op": "same", "old": {"outputs": old}, "new": {"outputs": new}}
    return {"resOutputsEvent": {"metadata": metadata}}


def test_nothing_but_the_same_is_no_change(tmp_path: Path) -> None:
    same = {"a": 1}
    assert not would_change(log(tmp_path, outputs(same, same), summary(same=31, refresh=31)))


@pytest.mark.parametrize("op", ["create", "update", "delete", "replace"])
def test_any_operation_is_a_change(tmp_path: Path, op: str) -> None:
    assert would_change(log(tmp_path, summary(same=30, **{op: 1})))


def test_another_output_is_a_change(tmp_path: Path) -> None:
    assert would_change(log(tmp_path, outputs({"a": 1}, {"a": 2}), summary(same=1)))


def test_a_log_without_its_end_counts_as_a_change(tmp_path: Path) -> None:
    assert would_change(log(tmp_path, outputs({}, {})))
