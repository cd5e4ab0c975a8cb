"""Hosts are asked at once, and all that is wrong with any of them is said at once."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.providers import ssh_connect
from components.providers.readiness import ask_hosts, judge_hosts
from models.host import Host
from models.inventory import Inventory
from models.refusal import Refusals
from tests.declarations import SECTIONS, plan_of
from tests.models.test_readiness import GOOD
from tests.providers.local_sshd import LocalSshd, free_port

HOSTS = plan_of(SECTIONS).hosts


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[LocalSshd, LocalSshd]]:
    servers = LocalSshd(tmp_path / "one"), LocalSshd(tmp_path / "two")
    yield servers
    for server in servers:
        server.stop()


def hosts(*names: str) -> dict[str, Host]:
    return dict.fromkeys(names, HOSTS["alpha"])


def test_every_host_answers_for_itself(two: tuple[LocalSshd, LocalSshd]) -> None:
    one, other = two
    answers = ask_hosts(hosts("one", "other"), {"one": one.ssh, "other": other.ssh})
    assert list(answers) == ["one", "other"]
    assert all(answer.free_mib > 0 for answer in answers.values())


def test_all_hosts_that_cannot_be_asked_are_named_at_once(sshd: LocalSshd) -> None:
    closed: dict[str, dict[str, Any]] = {
        name: sshd.ssh | {"port": free_port()} for name in ("one", "other")
    }
    with pytest.raises(Refusals) as refused:
        ask_hosts(hosts("one", "good", "other"), closed | {"good": sshd.ssh})
    assert len(refused.value.refusals) == 2
    for name in closed:
        assert f"port {closed[name]['port']}: Connection refused" in str(refused.value)


def test_a_silent_host_does_not_make_the_others_wait_their_turn(
    monkeypatch: pytest.MonkeyPatch, sshd: LocalSshd
) -> None:
    monkeypatch.setattr(ssh_connect, "CONNECT_TIMEOUT_S", 1.0)
    silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
    names = [str(number) for number in range(5)]
    ssh = {
        name: sshd.ssh | {"port": server.getsockname()[1]}
        for name, server in zip(names, silent, strict=True)
    }
    started = time.monotonic()
    with pytest.raises(Refusals):
        ask_hosts(hosts(*names), ssh)
    assert time.monotonic() - started < 3
    for server in silent:
        server.close()


def test_what_no_host_can_carry_is_refused_and_what_single_models_lack_is_told() -> None:
    plan = plan_of(SECTIONS)
    good = Inventory.model_validate(GOOD)
    lacking = Inventory.model_validate(GOOD | {"weights": {}})
    assert judge_hosts(plan, {"alpha": good}) == ([], [])
    refusals, warnings = judge_hosts(plan, {"alpha": lacking})
    assert refusals == []
    assert "no weights at /data/triton/weights/big-nvfp4" in str(warnings[0])
    bare = Inventory.model_validate(GOOD | {"systemd": False})
    refusals, _ = judge_hosts(plan, {"alpha": bare})
    assert "systemd does not run" in str(refusals[0])
