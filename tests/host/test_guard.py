"""A host that others stand on stays set up."""

from __future__ import annotations

import json
from pathlib import Path

from tests.host.conftest import BerthHost, record

OWN, OTHER = "berth/dev/shop", "berth/desk/desk"


def entry(repository: Path, name: str, owner: str) -> None:
    (repository / name).mkdir(parents=True)
    (repository / name / ".berth-owner.json").write_text(json.dumps({"owner": owner}))


def test_own_claims_and_entries_are_no_reason_to_stay(host: BerthHost, tmp_path: Path) -> None:
    entry(tmp_path / "models", "shop.small", OWN)
    host.claim(OWN, record(OWN, 0))
    done = host.run("guard", "--stack", "berth/dev", "--repository", str(tmp_path / "models"))
    assert (done.returncode, done.stderr) == (0, "")


def test_others_claims_are_named_with_owner_role_and_time(host: BerthHost) -> None:
    host.claim(OWN, record(OWN, 0))
    host.claim(OTHER, record(OTHER, 1, roles=["sentry"]))
    host.run("hold", "--gpu", "2", "--owner", "anna: notebook")
    done = host.run("guard", "--stack", "berth/dev")
    assert done.returncode == 1
    assert "claim of berth/desk/desk: sentry (small on triton@1) since 20" in done.stderr
    assert "anna: notebook" in done.stderr
    assert OWN not in done.stderr
    assert "Fix: " in done.stderr


def test_others_entries_are_named_with_their_owners(host: BerthHost, tmp_path: Path) -> None:
    for name, owner in (("shop.small", OWN), ("desk.small", OTHER), ("x", "berth/dev2/x")):
        entry(tmp_path, name, owner)
    (tmp_path / "by-hand").mkdir()
    (tmp_path / "file").touch()
    done = host.run("guard", "--stack", "berth/dev", "--repository", str(tmp_path))
    assert done.returncode == 1
    for said in ("desk.small (berth/desk/desk)", "x (berth/dev2/x)", "by-hand (not made by Berth)"):
        assert said in done.stderr
    assert "shop.small" not in done.stderr


def test_the_ledger_goes_with_own_claims_and_stays_with_others(host: BerthHost) -> None:
    host.claim(OWN, record(OWN, 0))
    host.claim(OTHER, record(OTHER, 1))
    refused = host.run("dismantle", "--stack", "berth/dev")
    assert refused.returncode == 1
    assert OTHER in refused.stderr
    assert len(host.names()) == 2
    host.ask("release", {"holder": OTHER, "names": None})
    assert host.run("dismantle", "--stack", "berth/dev").returncode == 0
    assert not host.ledger.exists()
    assert host.run("dismantle", "--stack", "berth/dev").returncode == 0
