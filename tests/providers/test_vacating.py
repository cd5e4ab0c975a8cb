"""What must go before a load, over several runs: a real `berth-host` keeps the ledger."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.providers import berth_host, ledger
from components.providers.claims import ClaimsProvider
from components.providers.ssh_shared import on_host
from components.providers.vacating import clear, in_its_way, others
from models.claim_record import ClaimRecord
from tests.providers.host_ledger import GPUS, HOLDER, HostLedger, record
from tests.providers.local_sshd import LocalSshd

LARGE, SMALL = record("big", 2, mib=20000), record("big", 2, mib=9000, shared=True)
BESIDE = record("small", 2, mib=9000, shared=True)


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSshd]:
    """A host on which no unit runs."""
    server = LocalSshd(tmp_path_factory.mktemp("sshd"))
    server.executable("systemctl", "#!/bin/sh\necho inactive\nexit 3\n")
    yield server
    server.stop()


class Runs:
    """A claim and a load of one stack, through one `up` after the other."""

    def __init__(self, reached: LocalSshd) -> None:
        self.about: dict[str, Any] = {"ssh": reached.ssh, "host": "alpha", "holder": HOLDER}
        self.claims: dict[str, Any] = {}
        self.load: dict[str, Any] = {}

    def up(self, *asked: ClaimRecord) -> bool:
        """Whether anything had to be vacated."""
        wanted = self.about | {"claims": [ledger.declared(each) for each in asked]}
        if not self.claims or ClaimsProvider().diff("x", self.claims, wanted).changes:
            self.claims = ClaimsProvider().update("x", self.claims or wanted, wanted).outs or {}
        of = in_its_way(LARGE.name, GPUS[2:3], 0, self.claims["conflicting"])
        news = self.about | {"vacates": of}
        if not others(self.load, news):  # The load is left as it is, and so is what it remembers.
            return False
        self.load = news
        on_host(self.about["ssh"], lambda session: clear(session, news))
        return True


def test_what_was_tried_and_reverted_is_vacated_again_when_it_is_tried_again(
    reached: LocalSshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = HostLedger(tmp_path)
    monkeypatch.setattr(berth_host, "PROGRAM", str(host.program))
    runs = Runs(reached)
    assert not runs.up(SMALL, BESIDE)
    claimed = int(time.time())
    assert runs.up(LARGE)
    assert not runs.up(LARGE)
    while int(time.time()) == claimed:  # The ledger knows the time to the second.
        time.sleep(0.05)
    assert not runs.up(SMALL, BESIDE)
    assert runs.up(LARGE)
    assert not runs.up(LARGE)
    assert sorted(host.records()) == [LARGE.name]
