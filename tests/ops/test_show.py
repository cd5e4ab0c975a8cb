"""What `berth status` says of a host's gateway and adapter."""

from __future__ import annotations

import copy
import io

import pytest
from rich.console import Console

from components.providers.gateway_health import GatewayHealth
from ops.live import LiveHost
from ops.show import show
from tests.declarations import SECTIONS, changed, plan_of, with_replicas
from tests.models.test_inventory import inventory

UNITS = {"berth-gateway.service": "active", "berth-adapter.service": "active"}
WELL = {"berth-gateway.service": "", "berth-adapter.service": ""}


def shown(units: dict[str, str], services: dict[str, str]) -> tuple[bool, list[str]]:
    """Whether all is well, and the lines that name a gateway's units."""
    sections = changed("hosts/alpha/gateway", {"adapter": {"image": "adapter:1"}})
    del sections["hosts"]["beta"], sections["instances"], sections["demo"]
    found = inventory(units=units)
    printed = io.StringIO()
    live = {"alpha": LiveHost(found, {}, services=services)}
    good = show(Console(file=printed, width=250), plan_of(sections), live)
    return good, [line for line in printed.getvalue().splitlines() if "berth-" in line]


def test_a_gateway_and_its_adapter_are_a_line_each() -> None:
    good, (gateway, adapter) = shown(UNITS, WELL)
    assert good
    assert "active" in gateway
    assert "https://alpha.test:8443" in gateway
    assert "http://127.0.0.1:8300" in adapter


@pytest.mark.parametrize("unit", UNITS)
def test_one_that_does_not_run_is_told(unit: str) -> None:
    good, lines = shown(UNITS | {unit: "failed"}, WELL)
    assert not good
    assert sum("failed" in line for line in lines) == 1


def test_one_that_runs_and_leaves_a_demo_out_is_told_with_the_demo() -> None:
    said = {"berth-adapter.service": "desk stays as it was: [x]"}
    good, (_, adapter) = shown(UNITS, WELL | said)
    assert not good
    assert "desk stays as it was: [x]" in adapter


def test_each_replica_of_a_role_is_a_line() -> None:
    plan = plan_of(with_replicas(copy.deepcopy(SECTIONS)))
    printed = io.StringIO()
    live = {name: LiveHost(None, {}) for name in plan.hosts}
    show(Console(file=printed, width=250), plan, live)
    said = printed.getvalue()
    roles = said[said.index("Roles") :]
    assert [port for port in ("8000", "8001") if f":{port}/v2/models/shop.small" in roles] == [
        "8000", "8001",
    ]  # fmt: skip


def test_a_role_that_the_gateway_refuses_is_told_though_its_model_is_there() -> None:
    sections = changed("hosts/beta/gateway", {"adapter": {"image": "adapter:1"}})
    plan = plan_of(sections)
    (role,) = [name for name, each in plan.roles.items() if each.instance.host_name == "beta"]

    def said(roles: dict[str, dict[str, str]]) -> tuple[bool, str]:
        printed = io.StringIO()
        live = {name: LiveHost(None, {}) for name in plan.hosts}
        live["beta"] = LiveHost(None, {}, gateway=GatewayHealth("", roles))
        show(Console(file=printed, width=250), plan, live)
        text = printed.getvalue()
        (line,) = [each for each in text[text.index("Roles") :].splitlines() if role in each]
        return "served" in line, line

    assert said({f"shop/{role}": {}})[0]
    served, line = said({f"shop/{role}": {"": "its model is being replaced"}})
    assert not served
    assert "refused: its model is being replaced" in line
