"""Nothing is open beyond loopback without a key."""

from __future__ import annotations

import pytest

from models.judged import Published
from models.rules import closed_ports
from tests.models.rules.plans import GOOD, refused, with_instance

LOOPBACK = (Published("127.0.0.1", 8000, 8000), Published("::1", 8100, 8002))


def test_ports_on_loopback_pass() -> None:
    assert not closed_ports.findings(GOOD)
    assert not closed_ports.findings(with_instance(published=LOOPBACK))


@pytest.mark.parametrize("address", ["0.0.0.0", "10.1.2.3", "", "::", "host.example"])
def test_http_beyond_loopback_wants_a_key_for_all_apis(address: str) -> None:
    port = Published(address, 8000, 8000)
    text = refused(closed_ports, with_instance(published=(port,)))
    assert f"triton@0 opens HTTP on {address or '0.0.0.0'}:8000, and only `control` APIs" in text
    assert "berth:instances.triton@0.listen" in text
    assert not closed_ports.findings(with_instance(published=(port,), keyed="all"))
    assert "no API asks for the key" in refused(
        closed_ports, with_instance(published=(port,), keyed="")
    )


def test_metrics_never_leave_loopback() -> None:
    port = Published("10.1.2.3", 8100, 8002)
    text = refused(closed_ports, with_instance(published=(port,), keyed="all"))
    assert "triton@0 opens metrics on 10.1.2.3:8100" in text


def test_a_container_in_the_hosts_network_is_refused() -> None:
    assert "the host's own network" in refused(closed_ports, with_instance(network="host"))


def test_another_stacks_instance_is_judged_with_that_stack() -> None:
    port = Published("0.0.0.0", 8000, 8000)
    assert not closed_ports.findings(with_instance(published=(port,), owned=False))
