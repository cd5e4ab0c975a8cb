"""The ledger's file: durable, one change at a time, and never overwritten when it is not ours."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest

from host.ledger import VERSION
from tests.host.conftest import BerthHost, record

ANNA, BOB = "berth/anna/shop", "berth/bob/desk"


def test_looking_makes_no_ledger(host: BerthHost) -> None:
    assert host.ask("claims") == {"claims": [], "gpus": []}
    assert not host.ledger.parent.exists()


def test_the_ledger_is_roots_alone(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 0))
    assert host.ledger.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"no database at all, only text of some length\n" * 40, b"x"])
def test_a_file_that_is_no_database_is_refused_and_left(host: BerthHost, content: bytes) -> None:
    host.ledger.parent.mkdir()
    host.ledger.write_bytes(content)
    for answer in (host.claim(ANNA, record(ANNA, 0)), host.ask("claims")):
        assert "not a ledger" in answer["refused"]["cause"]
        assert f"mv {host.ledger}" in answer["refused"]["fix"]
    assert host.ledger.read_bytes() == content


def test_another_programs_database_is_refused_and_left(host: BerthHost) -> None:
    host.ledger.parent.mkdir()
    with sqlite3.connect(host.ledger) as other:
        other.execute("CREATE TABLE bookmark (url TEXT)")
    before = host.ledger.read_bytes()
    assert "another program's" in host.claim(ANNA, record(ANNA, 0))["refused"]["cause"]
    assert host.ledger.read_bytes() == before


def test_a_newer_ledger_is_refused_in_words(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 0))
    with sqlite3.connect(host.ledger) as newer:
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    refused = host.ask("claims")["refused"]
    assert f"has format {VERSION + 1}" in refused["cause"]
    assert "newer Berth" in refused["fix"]


def test_a_claim_that_is_damaged_is_refused_in_words(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 0))
    for damage in ("nonsense", "[]", '{"name": 3}'):
        with sqlite3.connect(host.ledger) as database:
            database.execute("UPDATE claim SET record = ?", (damage,))
        assert host.ask("claims")["refused"]["cause"]


def test_who_keeps_the_ledger_busy_is_named(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 0))
    other = sqlite3.connect(host.ledger, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    asked = json.dumps({"holder": BOB, "claims": [record(BOB, 1)]})
    refused = json.loads(host.run("--wait", "0.2", "claim", stdin=asked).stdout)["refused"]
    assert "waited for 0.2 s" in refused["cause"]
    assert "pytest" in refused["cause"]
    other.close()
    assert "claims" in host.claim(BOB, record(BOB, 1))


def test_a_change_waits_for_the_one_before_it(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 0))
    other = sqlite3.connect(host.ledger, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    waiting = subprocess.Popen(
        [*host.command, "claims"], env=host.environment, stdout=subprocess.PIPE
    )
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(timeout=0.5)
    other.execute("COMMIT")
    said, _ = waiting.communicate(timeout=10)
    assert [claim["owner"] for claim in json.loads(said)["claims"]] == [ANNA]


def test_a_power_cut_in_the_middle_of_a_change_undoes_it(host: BerthHost, tmp_path: Path) -> None:
    """The file with its journal as a cut would leave them, opened anew."""
    host.claim(ANNA, record(ANNA, 0))
    half = sqlite3.connect(host.ledger, isolation_level=None)
    half.execute("PRAGMA cache_size = 1")  # So that pages reach the file before the commit.
    half.execute("PRAGMA cache_spill = 1")
    half.execute("BEGIN IMMEDIATE")
    half.execute("DELETE FROM claim")
    half.executemany(
        "INSERT INTO claim VALUES (?, 'x', ?)", [(str(n), "x" * 3000) for n in range(300)]
    )
    after = tmp_path / "after/ledger.db"
    after.parent.mkdir()
    for file in host.ledger.parent.iterdir():
        (after.parent / file.name).write_bytes(file.read_bytes())
    assert (after.parent / "ledger.db-journal").stat().st_size > 0
    assert after.stat().st_size > 300 * 3000  # Half of the change is in the file.
    half.close()
    revived = BerthHost(host.file, after, host.programs)
    assert revived.names() == host.names() == ["berth/anna/shop.small/triton@0"]
    assert "claims" in revived.claim(BOB, record(BOB, 1))


def test_a_full_disk_changes_nothing(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 0))
    before = host.ask("claims")
    # No file may grow beyond what the ledger has now: as a full disk, without one.
    blocks = host.ledger.stat().st_size // 512
    many = [record(BOB, 1, roles=[f"role-{n}" for n in range(3000)])]
    asked = json.dumps({"holder": BOB, "claims": many})
    script = f"trap '' XFSZ; ulimit -f {blocks // 2}; exec \"$@\""
    done = subprocess.run(
        ["sh", "-c", script, "sh", *host.command, "claim"],
        input=asked,
        env=host.environment,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["refused"]["cause"]
    assert host.ask("claims") == before


def test_who_is_not_root_is_told_so(host: BerthHost) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        open_to_all = BerthHost(Path(folder) / "berth-host", Path(folder) / "b/l.db", host.programs)
        open_to_all.file.write_bytes(host.file.read_bytes())
        open_to_all.claim(ANNA, record(ANNA, 0))
        for words in (["claims", "--text"], ["hold", "--gpu", "0", "--owner", "x"]):
            done = subprocess.run(
                ["/usr/bin/python3", *open_to_all.command[1:], *words],
                user="nobody",
                env=host.environment | {"PATH": "/usr/bin:/bin"},
                text=True,
                capture_output=True,
                check=False,
            )
            assert done.returncode == 1
            assert "Traceback" not in done.stderr
            if words[0] == "claims":
                assert "run this as root" in done.stderr
