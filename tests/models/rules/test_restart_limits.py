"""A unit is restarted, and given up when that does not help."""

from __future__ import annotations

import pytest

from models.rules import restart_limits
from tests.models.rules.plans import GOOD, UNIT, refused, with_instance, with_service


def test_a_limit_that_can_be_reached_passes() -> None:
    assert not restart_limits.findings(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        UNIT.replace("=300", "=5min"),
        UNIT.replace("=300", "=infinity"),
        UNIT.replace("RestartSec=2", "RestartSec=500ms"),
        UNIT.replace("RestartSec=2\n", ""),
        UNIT + "RestartSec=60\nRestartSec=1\n",
        UNIT + "# RestartSec=60\n",
    ],
)
def test_other_ways_to_write_it_pass(text: str) -> None:
    assert not restart_limits.findings(with_instance(unit=text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nothing says how it is restarted"),
        (UNIT.replace("Restart=always", ""), "it has no Restart="),
        (UNIT.replace("=always", "=no"), "it has no Restart="),
        (UNIT.replace("StartLimitBurst=10", ""), "it has no StartLimitBurst="),
        (UNIT.replace("=300", "=0"), "StartLimitIntervalSec=0 means no limit"),
        (UNIT.replace("Burst=10", "Burst=0"), "StartLimitBurst=0 means no limit"),
        (UNIT.replace("=300", "=20"), "10 starts 2 s apart take 20 s, and only those within 20 s"),
        (UNIT.replace("Sec=2", "Sec=1min"), "10 starts 60 s apart take 600 s"),
        (UNIT.replace("Sec=2", "Sec=soon"), "RestartSec=soon is no time"),
        (UNIT.replace("=300", "=3 fortnights"), "is no time"),
        (UNIT.replace("[Unit]", "[Install]"), "it has no StartLimitIntervalSec="),
        (UNIT + "RestartSteps=3\nRestartMaxDelaySec=1h\n", "10 starts 3600 s apart"),
    ],
)
def test_a_unit_that_is_never_given_up_is_refused(text: str, says: str) -> None:
    said = refused(restart_limits, with_instance(unit=text))
    assert says in said
    assert "set `restart` of the host to delay_s: " in said


def test_the_fix_that_it_names_passes() -> None:
    said = refused(restart_limits, with_instance(unit=UNIT.replace("=300", "=20")))
    assert "delay_s: 2, burst: 10, within_s: 300" in said


@pytest.mark.parametrize("name", ["berth-gateway", "berth-adapter"])
def test_the_units_beside_the_instances_are_held_to_it_too(name: str) -> None:
    assert not restart_limits.findings(with_service())
    text = refused(restart_limits, with_service(name, unit=UNIT.replace("=10", "=0")))
    assert f"the unit of {name}: StartLimitBurst=0 means no limit" in text
