"""The end of a run tells what came of it, not what systemd is still about to do."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from models.inventory import Inventory
from ops import live
from ops.live import NOT_RUNNING, LiveHost, LiveInstance, look_when_settled, starting
from tests.declarations import SECTIONS, plan_of
from tests.models.test_readiness import GOOD

PLAN = plan_of(SECTIONS)
UNIT = "triton@0.service"


def seen(state: str, trouble: str) -> dict[str, LiveHost]:
    """All is well but for `triton@0`, in a unit's state and with a trouble."""
    found: dict[str, LiveHost] = {}
    for host in PLAN.hosts:
        here = PLAN.instances_on(host)
        units = {each.unit: "active" for each in here} | {UNIT: state}
        servers = {each.name: LiveInstance({}) for each in here}
        servers |= {name: LiveInstance({}, trouble) for name in servers if name == "triton@0"}
        inventory = Inventory.model_validate(GOOD | {"units": units})
        found[host] = LiveHost(inventory, servers)
    return found


@pytest.mark.parametrize("state", ["active", "activating", "reloading"])
def test_a_server_that_does_not_listen_yet_is_starting_while_systemd_runs_its_unit(
    state: str,
) -> None:
    assert starting(PLAN, seen(state, NOT_RUNNING)) == ["triton@0"]


def test_a_unit_that_was_starting_when_it_was_asked_for_is_though_its_server_listens_by_now() -> (
    None
):
    assert starting(PLAN, seen("activating", "")) == ["triton@0"]


@pytest.mark.parametrize(
    ("state", "trouble"),
    [("failed", NOT_RUNNING), ("inactive", NOT_RUNNING), ("active", ""), ("active", "wedged")],
)
def test_a_server_that_will_not_come_by_waiting_is_not_waited_for(state: str, trouble: str) -> None:
    assert starting(PLAN, seen(state, trouble)) == []


def test_a_host_that_cannot_be_reached_is_not_waited_for() -> None:
    lost = {name: LiveHost(None, {}) for name in PLAN.hosts}
    assert starting(PLAN, lost) == []


def test_a_unit_that_takes_over_a_port_is_seen_once_it_serves_and_named_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = [seen("activating", NOT_RUNNING), seen("active", NOT_RUNNING), seen("active", "")]

    def look(*_: object) -> Mapping[str, LiveHost]:
        return looks.pop(0)

    monkeypatch.setattr(live, "look", look)
    monkeypatch.setattr(live, "LOOK_AGAIN_S", 0)
    assert look_when_settled(PLAN, {}) == seen("active", "")
    said = capsys.readouterr().err.splitlines()
    assert said == ["waiting for triton@0, which systemd is starting"]


def test_one_that_starts_without_end_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "look", lambda *_: seen("activating", NOT_RUNNING))
    found = look_when_settled(PLAN, {}, within_s=0)
    assert found == seen("activating", NOT_RUNNING)
