"""An entry's life on a real file system, through a real sshd."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pulumi.output import Unknown

from components.providers.repository_entry import RepositoryEntryProvider
from models.refusal import Refusal
from tests.providers.local_sshd import LocalSshd

FILES = {"config.pbtxt": 'backend: "vllm"\n', "1/model.json": '{"model": "/w"}\n'}
PROVIDER = RepositoryEntryProvider()
PROGRAM = Path(__file__).parents[2] / "host" / "model_entry.py"


def _inputs(sshd: LocalSshd, data: Path, **changed: Any) -> dict[str, Any]:
    (data / "models").mkdir(parents=True, exist_ok=True)
    weights = data / "weights" / "gemma"
    weights.mkdir(parents=True, exist_ok=True)
    (weights / "config.json").write_text("{}")
    return {
        "ssh": sshd.ssh,
        "host": "sandbox",
        "repository": str(data / "models"),
        "entry": "demo.gemma",
        "files": dict(FILES),
        "weights": str(weights),
        "owner": "berth/dev/reference",
    } | changed


def _there(entry: Path) -> dict[str, str]:
    paths = [path for path in entry.rglob("*") if path.is_file()]
    return {path.relative_to(entry).as_posix(): path.read_text() for path in paths}


def _staged(data: Path) -> list[str]:
    return [path.name for path in (data / ".staging").iterdir() if path.name != ".lock"]


def _refused(props: dict[str, Any]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        PROVIDER.create(props)
    return caught.value


def test_an_entry_lives_from_create_to_delete_on_its_own_outputs(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    entry = tmp_path / "models" / "demo.gemma"
    inputs = _inputs(sshd, tmp_path)

    created = PROVIDER.create(inputs)
    outs = created.outs or {}
    assert created.id == "sandbox:demo.gemma"
    assert _there(entry) == FILES | {
        ".berth-owner.json": json.dumps(
            {"owner": "berth/dev/reference", "revision": outs["revision"]}
        )
        + "\n"
    }
    assert outs == inputs | {"revision": outs["revision"]}
    assert not PROVIDER.diff(created.id, outs, inputs).changes

    read = PROVIDER.read(created.id, outs)
    assert (read.id, read.outs, read.inputs) == (created.id, outs, inputs)

    news = inputs | {"files": FILES | {"config.pbtxt": "changed\n"}}
    assert PROVIDER.diff(created.id, outs, news).changes
    updated = PROVIDER.update(created.id, outs, news).outs or {}
    assert updated["revision"] != outs["revision"]
    assert (entry / "config.pbtxt").read_text() == "changed\n"

    PROVIDER.delete(created.id, updated)
    assert not entry.exists()
    assert _staged(tmp_path) == []
    PROVIDER.delete(created.id, updated)
    assert PROVIDER.read(created.id, updated).id == ""


def test_files_are_readable_for_a_server_that_is_not_root(sshd: LocalSshd, tmp_path: Path) -> None:
    PROVIDER.create(_inputs(sshd, tmp_path))
    entry = tmp_path / "models" / "demo.gemma"
    assert {oct(path.stat().st_mode & 0o777) for path in (entry, entry / "1")} == {"0o755"}
    files = (path for path in entry.rglob("*") if path.is_file())
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o644"}


def test_a_repeated_create_writes_nothing_and_keeps_the_revision(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    inputs = _inputs(sshd, tmp_path)
    first = PROVIDER.create(inputs).outs or {}
    inode = (tmp_path / "models" / "demo.gemma").stat().st_ino
    second = PROVIDER.create(inputs).outs or {}
    assert second["revision"] == first["revision"]
    assert (tmp_path / "models" / "demo.gemma").stat().st_ino == inode


def test_another_way_to_the_host_is_an_update_that_rewrites_nothing(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    inputs = _inputs(sshd, tmp_path)
    outs = PROVIDER.create(inputs).outs or {}
    news = inputs | {"ssh": sshd.ssh | {"address": "localhost"}}
    diff = PROVIDER.diff("x", outs, news)
    assert diff.changes
    assert diff.replaces == []
    assert PROVIDER.update("x", outs, news).outs == news | {"revision": outs["revision"]}


@pytest.mark.parametrize("key", ["host", "repository", "entry", "owner"])
def test_another_place_or_owner_replaces_the_entry(
    sshd: LocalSshd, tmp_path: Path, key: str
) -> None:
    inputs = _inputs(sshd, tmp_path)
    diff = PROVIDER.diff("x", inputs | {"revision": "r"}, inputs | {key: "other"})
    assert (diff.changes, diff.replaces) == (True, [key])


def test_files_that_are_not_known_yet_are_a_change(sshd: LocalSshd, tmp_path: Path) -> None:
    inputs = _inputs(sshd, tmp_path)
    unknown = Unknown()  # type: ignore[no-untyped-call]
    diff = PROVIDER.diff("x", inputs, inputs | {"files": unknown})
    assert (diff.changes, diff.replaces) == (True, [])


def test_a_hands_edits_come_back_as_inputs_and_the_next_update_puts_them_right(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    inputs = _inputs(sshd, tmp_path)
    outs = PROVIDER.create(inputs).outs or {}
    entry = tmp_path / "models" / "demo.gemma"
    (entry / "config.pbtxt").write_text("by hand\n")
    (entry / "1" / "model.json").unlink()
    (entry / "2").mkdir()
    (entry / "extra").write_bytes(b"\xff\x00")
    (entry / "big").write_text("x" * 70000)
    (entry / "link").symlink_to("/etc/passwd")
    (entry / "1" / "__pycache__").mkdir()
    (entry / "1" / "__pycache__" / "model.pyc").write_bytes(b"x")

    read = PROVIDER.read("x", outs)
    assert read.inputs is not None
    assert read.inputs["files"] == {
        "config.pbtxt": "by hand\n",
        "1/": "",
        "2/": "",
        "extra": "\ufffd\x00",
        "big": "<70000 bytes>",
        "link": "<link to /etc/passwd>",
    }
    drifted = read.outs or {}
    assert PROVIDER.diff("x", drifted, inputs).changes
    again = PROVIDER.update("x", drifted, inputs).outs or {}
    assert again["revision"] != outs["revision"]
    assert (PROVIDER.read("x", again).inputs or {})["files"] == FILES


def test_a_cache_of_the_python_backend_is_no_drift(sshd: LocalSshd, tmp_path: Path) -> None:
    outs = PROVIDER.create(_inputs(sshd, tmp_path)).outs or {}
    cache = tmp_path / "models" / "demo.gemma" / "1" / "__pycache__"
    cache.mkdir()
    (cache / "model.pyc").write_bytes(b"x")
    assert PROVIDER.read("x", outs).outs == outs


def test_a_file_that_the_server_may_not_read_is_drift(sshd: LocalSshd, tmp_path: Path) -> None:
    outs = PROVIDER.create(_inputs(sshd, tmp_path)).outs or {}
    (tmp_path / "models" / "demo.gemma" / "config.pbtxt").chmod(0o600)
    files = (PROVIDER.read("x", outs).inputs or {})["files"]
    assert files["config.pbtxt"].startswith("<mode 600>")


def test_an_entry_of_another_owner_is_named_and_never_touched(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    theirs = _inputs(sshd, tmp_path, owner="berth/prod/shop")
    PROVIDER.create(theirs)
    entry = tmp_path / "models" / "demo.gemma"
    before = _there(entry)
    ours = _inputs(sshd, tmp_path, files={"config.pbtxt": "ours"})
    assert "belongs to berth/prod/shop" in _refused(ours).cause
    assert PROVIDER.read("x", ours).id == ""
    PROVIDER.delete("x", ours)
    assert _there(entry) == before


def test_an_entry_made_by_hand_is_never_overwritten(sshd: LocalSshd, tmp_path: Path) -> None:
    inputs = _inputs(sshd, tmp_path)
    entry = tmp_path / "models" / "demo.gemma"
    entry.mkdir()
    (entry / "config.pbtxt").write_text("by hand\n")
    refusal = _refused(inputs)
    assert "not made by Berth" in refusal.cause
    assert str(entry) in refusal.fix
    assert _there(entry) == {"config.pbtxt": "by hand\n"}


def test_missing_weights_are_refused_with_those_that_are_there(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    inputs = _inputs(sshd, tmp_path, weights=str(tmp_path / "weights" / "gemmma"))
    refusal = _refused(inputs)
    assert "weights/gemmma is not on the host" in refusal.cause
    assert "holds: gemma" in refusal.fix
    assert list((tmp_path / "models").iterdir()) == []


def test_weights_without_a_config_are_refused(sshd: LocalSshd, tmp_path: Path) -> None:
    inputs = _inputs(sshd, tmp_path)
    (tmp_path / "weights" / "gemma" / "config.json").unlink()
    assert "no config.json" in _refused(inputs).cause
    assert list((tmp_path / "models").iterdir()) == []


def test_a_host_without_a_repository_is_sent_to_its_own_stack(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    inputs = _inputs(sshd, tmp_path)
    (tmp_path / "models").rmdir()
    assert "host's own stack" in _refused(inputs).fix


@pytest.mark.parametrize("name", ["/etc/passwd", "../other/config.pbtxt", ".berth-owner.json"])
def test_a_file_name_that_leads_out_of_the_entry_fails_the_check(
    sshd: LocalSshd, tmp_path: Path, name: str
) -> None:
    inputs = _inputs(sshd, tmp_path, files={name: "x"})
    failures = PROVIDER.check({}, inputs).failures
    assert [failure.property for failure in failures] == ["files"]
    assert name in failures[0].reason


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_leaves_the_old_entry_and_says_how_much_is_free(
    sshd: LocalSshd, small_disk: Path
) -> None:
    inputs = _inputs(sshd, small_disk)
    outs = PROVIDER.create(inputs).outs or {}
    entry = small_disk / "models" / "demo.gemma"
    before = _there(entry)
    (small_disk / "ballast").write_bytes(b"x" * 180_000)
    news = inputs | {"files": FILES | {"big.txt": "x" * 60_000}}
    with pytest.raises(Refusal) as caught:
        PROVIDER.update("x", outs, news)
    assert "KiB" in caught.value.cause
    assert " 0 KiB" not in caught.value.cause
    assert _there(entry) == before
    assert _staged(small_disk) == []


def test_a_repository_on_a_file_system_of_its_own_is_refused(
    sshd: LocalSshd, small_disk: Path
) -> None:
    inputs = _inputs(sshd, small_disk, repository=str(small_disk))
    assert "different file systems" in _refused(inputs).cause


def test_a_run_killed_while_writing_leaves_the_old_entry_and_its_leftovers_go(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    inputs = _inputs(sshd, tmp_path)
    outs = PROVIDER.create(inputs).outs or {}
    entry = tmp_path / "models" / "demo.gemma"
    before = _there(entry)
    payload = inputs | {"files": {f"{n}.txt": "x" * 2000 for n in range(3000)}, "action": "ensure"}
    script = (
        f"import json, runpy\nspace = runpy.run_path({str(PROGRAM)!r})\n"
        f"space['main'](json.loads({json.dumps(payload)!r}))\n"
    )
    writer = subprocess.Popen([sys.executable, "-"], stdin=subprocess.PIPE, text=True)
    assert writer.stdin is not None
    writer.stdin.write(script)
    writer.stdin.close()
    give_up = time.monotonic() + 20
    while not any((tmp_path / ".staging").glob("demo.gemma@*/5.txt")):
        assert time.monotonic() < give_up
        assert writer.poll() is None
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert _there(entry) == before
    assert len(_staged(tmp_path)) == 1

    PROVIDER.update("x", outs, inputs)
    assert _there(entry) == before
    assert _staged(tmp_path) == []


def test_leftovers_of_other_entries_are_left_alone(sshd: LocalSshd, tmp_path: Path) -> None:
    inputs = _inputs(sshd, tmp_path)
    (tmp_path / ".staging" / "demo.gemma.two@1234").mkdir(parents=True)
    PROVIDER.create(inputs)
    assert _staged(tmp_path) == ["demo.gemma.two@1234"]


def test_a_reader_sees_the_old_entry_or_the_new_one_and_nothing_between(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    versions = [{"a": text * 1000, "b": text * 1000} for text in ("1", "2")]
    inputs = _inputs(sshd, tmp_path, files=versions[0])
    outs = PROVIDER.create(inputs).outs or {}
    entry = tmp_path / "models" / "demo.gemma"
    watcher = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys\nwhile True:\n"
            "    fd = os.open(sys.argv[1], os.O_DIRECTORY)\n"  # fails if there is none for a moment
            "    try:\n"
            "        texts = [open(os.open(n, os.O_RDONLY, dir_fd=fd)).read() for n in 'ab']\n"
            "        assert texts[0] == texts[1] and len(texts[0]) == 1000, texts\n"
            "    except FileNotFoundError:\n        pass\n"  # swapped out and removed meanwhile
            "    finally:\n        os.close(fd)\n",
            str(entry),
        ],
        stderr=subprocess.PIPE,
    )
    for turn in range(6):
        outs = PROVIDER.update("x", outs, inputs | {"files": versions[turn % 2]}).outs or {}
    still_reading = watcher.poll() is None
    watcher.kill()
    _, errors = watcher.communicate()
    assert still_reading, errors


def test_the_hosts_program_is_python_3_9() -> None:
    ast.parse(PROGRAM.read_text(), feature_version=(3, 9))
