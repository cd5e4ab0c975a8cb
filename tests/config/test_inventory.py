"""Recorded inventories: stable files, and words for every file that cannot be used."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from config.inventory import file_name, read, recorded, text, write
from models.inventory import Inventory
from models.refusal import Refusal
from tests.models.test_inventory import CLAIM
from tests.models.test_readiness import GOOD

FOUND = Inventory.model_validate(GOOD | {"claims": [CLAIM], "free_mib": 50176})


def recorded_as(project: Path, content: object) -> str:
    """What reading the file is refused with."""
    file = project / "inventory/alpha.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(Refusal) as refused:
        read(project, "alpha")
    said = str(refused.value)
    assert said.startswith("inventory/alpha.json")
    return said


def changed(**values: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(text("alpha", FOUND))
    return content | values


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    assert write(tmp_path, "alpha", FOUND) == tmp_path / file_name("alpha")
    assert read(tmp_path, "alpha") == FOUND
    assert recorded(tmp_path, ["alpha"]) == {"alpha": FOUND}


def test_the_same_facts_in_another_order_are_the_same_file() -> None:
    first = GOOD["gpus"]["found"]
    second = CLAIM | {"name": "another"}
    one = GOOD | {"claims": [CLAIM, second], "ports": [22, 8000]}
    other = one | {
        "claims": [second, CLAIM],
        "ports": [8000, 22],
        "gpus": GOOD["gpus"] | {"found": first[::-1]},
        "weights": dict(reversed(GOOD["weights"].items())),
    }
    assert text("alpha", Inventory.model_validate(one)) == text(
        "alpha", Inventory.model_validate(other)
    )


def test_two_records_of_an_unchanged_host_differ_only_in_when_they_were_taken() -> None:
    later = FOUND.model_copy(update={"taken_at": "2026-02-02T00:00:00Z", "free_mib": 50170})
    later = later.model_copy(update={"free_mib": 50199})
    before, after = (text("alpha", each).splitlines() for each in (FOUND, later))
    different = [line for line, other in zip(before, after, strict=True) if line != other]
    assert [line.split(":")[0].strip() for line in different] == ['"taken_at"']


def test_a_tensor_is_one_line_so_that_a_diff_can_be_read() -> None:
    group = {"name": "a.weight", "dtype": "BF16", "shape": [2, 3], "bytes": 12, "count": 1}
    other = group | {"name": "b.weight", "shape": [4096, 4096]}
    found = Inventory.model_validate(GOOD | {"weights": {"small": {"groups": [group, other]}}})
    (line,) = [line for line in text("alpha", found).splitlines() if "a.weight" in line]
    assert json.loads(line.strip().rstrip(",")) == group | {"layers": []}


def test_a_file_follows_the_persons_umask_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        file = write(tmp_path, "alpha", FOUND)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, "alpha", FOUND)
    before = file.read_text()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path, "alpha", FOUND.model_copy(update={"driver": "1.2"}))
    assert file.read_text() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_host_that_nobody_recorded_is_named_with_the_command_that_does(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        recorded(tmp_path, ["alpha", "beta"])
    for host in ("alpha", "beta"):
        assert f"inventory/{host}.json: nothing is recorded of host {host}" in str(refused.value)
        assert f"`berth discover {host}`" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{\n  "host": "alpha",\n  oops\n}', "inventory/alpha.json:3:3: no JSON"),
        ("", "inventory/alpha.json:1:1: no JSON"),
        ("[" * 100_000, "no JSON"),
        ([], "no inventory: it is no object"),
        (changed(host="beta"), "host: this is the inventory of host beta, not of alpha"),
        ({"name": "berth", "version": 3}, "this is the inventory of no host that it names"),
        (changed(schema_version=2), "schema_version: written by a newer Berth: its schema is 2"),
        (changed(taken_at="yesterday"), "taken_at: `yesterday` is no moment"),
        (changed(free_mib="lots"), "inventory/alpha.json: free_mib: input should be a valid"),
        (changed(gpus=GOOD["gpus"] | {"found": [{"uuid": 1}]}), "alpha.json: gpus.found[0].uuid"),
        (changed(claims=[{"name": "x"}]), "inventory/alpha.json: claims[0].owner"),
    ],
    ids=range(11),
)
def test_a_file_that_cannot_be_used_is_refused_with_the_place(
    tmp_path: Path, content: object, says: str
) -> None:
    said = recorded_as(tmp_path, content)
    assert says in said
    assert "Traceback" not in said


def test_what_a_newer_berth_added_is_passed_over(tmp_path: Path) -> None:
    file = write(tmp_path, "alpha", FOUND)
    file.write_text(json.dumps(changed(weather="fine")))
    assert read(tmp_path, "alpha") == FOUND
