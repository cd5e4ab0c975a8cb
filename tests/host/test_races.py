"""Many at once, and killed at any moment: one winner, and no claim lost that was answered."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from host.claims import listed, release
from tests.host.conftest import BerthHost, record

pytestmark = pytest.mark.races

RACES = ((4, 1000), (50, 20))
"""Racers at once, and how often they race."""
KILLS = 60


def asked(holder: str, *gpus: int, **more: Any) -> str:
    return json.dumps({"holder": holder, "claims": [record(holder, *gpus, **more)]})


STARTER = """
import os, sys
sys.path.insert(0, sys.argv[1])
import host.claims, host.gpus
from host.__main__ import main
ledger, asked, said = sys.argv[2:]
for go in sys.stdin:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(asked, os.O_RDONLY), 0)
        sys.stdin = open(0, closefd=False)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        sys.argv = ["berth-host", "--ledger", ledger, "claim"]
        status = main()
        sys.stdout.flush()
        os._exit(status)
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""Runs the installed file's own `main`, in a process of its own each time it is told to: so all
start at once, where interpreters that are started would come one after another."""


class Racer:
    """One holder that claims GPU 2 whenever it is told to."""

    def __init__(self, host: BerthHost, folder: Path, number: int) -> None:
        self.holder = f"berth/s{number}/d{number}"
        self._said = folder / f"{number}.said"
        question = folder / f"{number}.asked"
        question.write_text(asked(self.holder, 2))
        words = [str(host.file), str(host.ledger), str(question), str(self._said)]
        self.process = subprocess.Popen(
            [sys.executable, "-IS", "-c", STARTER, *words],
            env=host.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout
        assert self.process.stdout.readline() == "0\n"
        answer: dict[str, Any] = json.loads(self._said.read_text())
        return answer


@pytest.fixture
def racers(
    host: BerthHost, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[list[Racer]]:
    racing = [Racer(host, tmp_path, number) for number in range(request.param)]
    yield racing
    for racer in racing:
        racer.process.kill()
        racer.process.communicate()


@pytest.mark.parametrize(("racers", "races"), RACES, indirect=["racers"])
def test_of_those_that_race_for_one_gpu_one_wins_and_the_others_name_it(
    host: BerthHost, racers: list[Racer], races: int
) -> None:
    """Each racer claims in a process of its own each time."""
    host.claim("berth/old/old", record("berth/old/old", 0))
    before = listed(host.ledger)
    for _ in range(races):
        for racer in racers:
            racer.go()
        answers = {racer.holder: racer.answer() for racer in racers}
        winners = [holder for holder, answer in answers.items() if "claims" in answer]
        assert len(winners) == 1
        told = [answer["refused"]["cause"] for answer in answers.values() if "refused" in answer]
        assert len(told) == len(racers) - 1
        assert all(f"by {winners[0]}: " in cause for cause in told)
        assert len(listed(host.ledger)["claims"]) == 2
        release(host.ledger, {"holder": winners[0], "names": None})
        assert listed(host.ledger) == before


def test_a_kill_at_any_moment_loses_no_claim_and_leaves_no_lock(host: BerthHost) -> None:
    """Answered claims stand; unanswered ones stand whole or not at all."""
    random.seed(4)
    known: set[str] = set()
    began = time.monotonic()
    host.claim("berth/warm/up", record("berth/warm/up", 3, shared=True, mib=1))
    longest = 1.5 * (time.monotonic() - began)
    answered = 0
    for number in range(KILLS):
        holder = f"berth/s{number}/d{number}"
        process = subprocess.Popen(
            [*host.command, "claim"],
            env=host.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin
        assert process.stdout
        process.stdin.write(asked(holder, 0, 1, shared=True, mib=1))
        process.stdin.close()
        try:
            process.wait(timeout=random.uniform(0, longest))  # noqa: S311
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        said = process.stdout.read()
        process.wait()
        if said:
            answered += 1
            known.add(json.loads(said)["claims"][0]["name"])
        claims = host.ask("claims")["claims"]
        assert known <= {claim["name"] for claim in claims}
        assert all(len(claim["gpus"]) == 2 for claim in claims if "warm" not in claim["name"])
    assert 0 < answered < KILLS
    with sqlite3.connect(host.ledger) as ledger:
        assert ledger.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_ledger_removed_while_another_waits_loses_nothing(host: BerthHost) -> None:
    """Whoever waits for a ledger that goes away claims in the one that is made anew."""
    host.claim("berth/base/base", record("berth/base/base", 0))
    host.ask("release", {"holder": "berth/base/base", "names": None})
    removing = sqlite3.connect(host.ledger, isolation_level=None)
    removing.execute("BEGIN IMMEDIATE")
    claiming = subprocess.Popen(
        [*host.command, "claim"],
        env=host.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert claiming.stdin
    claiming.stdin.write(asked("berth/dev/shop", 2))
    claiming.stdin.close()
    wait_until_it_waits(claiming.pid, host.ledger)
    host.ledger.unlink()
    removing.close()
    assert claiming.stdout
    assert json.loads(claiming.stdout.read())["claims"]
    claiming.wait(timeout=60)
    assert host.names() == ["berth/dev/shop.small/triton@2"]


def wait_until_it_waits(pid: int, ledger: Path) -> None:
    """Until the process has had the ledger open for twenty looks in a row."""
    give_up = time.monotonic() + 30
    looks = 0
    while looks < 20:
        assert time.monotonic() < give_up
        files = [Path(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]  # noqa: PTH208
        looks = looks + 1 if ledger in [file.resolve() for file in files] else 0
        time.sleep(0.01)
