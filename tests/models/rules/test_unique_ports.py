"""A port of a host is one server's."""

from __future__ import annotations

from dataclasses import replace

from models.judged import Published
from models.rules import unique_ports
from tests.models.rules.plans import GOOD, refused, with_host, with_instance, with_service

TWICE = (Published("127.0.0.1", 8010, 8000), Published("127.0.0.1", 8100, 8002))


def test_ports_of_their_own_pass() -> None:
    assert not unique_ports.findings(GOOD)


def test_one_port_on_two_addresses_is_one_servers() -> None:
    both = (Published("127.0.0.1", 8000, 8000), Published("10.1.2.3", 8000, 8000))
    assert not unique_ports.findings(with_instance(published=both))


def test_a_port_of_two_instances_is_refused_with_both_places_and_a_free_one() -> None:
    text = refused(unique_ports, with_instance(published=TWICE))
    assert "port 8010 of host `alpha` is used twice, here and at berth:instances.triton@0" in text
    assert "berth:instances.triton@wide.http_port" in text
    assert "8011 is free" in text


def test_http_and_metrics_of_one_instance_are_two_ports() -> None:
    same = (Published("127.0.0.1", 8000, 8000), Published("127.0.0.1", 8000, 8002))
    text = refused(unique_ports, with_instance(published=same))
    assert "port 8000 of host `alpha` is used twice" in text


def test_a_port_of_another_stack_is_refused_with_its_owner() -> None:
    taken = {8000: "triton@9 of stack lab", 8001: "something that is not Berth's"}
    text = refused(unique_ports, with_host(taken_ports=taken))
    at = "host alpha, berth:instances.triton@0.http_port"
    assert f"{at}: port 8000 is in use by triton@9 of stack lab" in text
    assert "8003 is free" in text


def test_the_same_port_on_two_hosts_is_fine() -> None:
    beta = replace(GOOD.instances[0], host="beta", name="triton@b0")
    assert not unique_ports.findings(replace(GOOD, instances=(*GOOD.instances, beta)))


def test_a_gateways_and_an_adapters_ports_are_theirs() -> None:
    assert not unique_ports.findings(with_service())
    text = refused(unique_ports, with_service(port=8000))
    assert "port 8000 of host `alpha` is used twice" in text
    assert "berth:hosts.alpha.gateway.adapter.port" in text
    text = refused(unique_ports, with_service("berth-gateway", port=8300))
    assert "berth:hosts.alpha.gateway.port" in text
