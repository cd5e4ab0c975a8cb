"""Names mean one thing on a host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.renderers import adapter_unit, gateway_unit
from models.judged import Judged
from models.rules import unique_names
from tests.models.rules.plans import GOOD, refused, with_host, with_model


def test_names_of_their_own_pass() -> None:
    assert not unique_names.findings(GOOD)


def test_a_role_of_another_demo_is_refused_with_both_owners_and_another_name() -> None:
    text = refused(unique_names, with_host(others_roles={"small": "berth/lab/toys: small"}))
    assert "role `small` on host `alpha` is claimed by berth/dev/shop (small on triton@2)" in text
    assert "and by berth/lab/toys: small" in text
    assert "such as `shop-small`" in text


def test_a_role_that_two_models_answer_to_is_refused() -> None:
    text = refused(unique_names, with_model("small", roles=("big",)))
    assert "berth:demo.roles.big: role `big` on host `alpha` is claimed by" in text


@pytest.mark.parametrize(
    ("changed", "passes"),
    [
        ({}, True),
        ({"model": "other"}, False),
        ({"engine": "vllm"}, False),
        ({"owner": "berth/lab/shop"}, False),
    ],
)
def test_replicas_of_a_role_are_one_owners_and_of_one_model_and_engine(
    changed: dict[str, Any], passes: bool
) -> None:
    small = next(each for each in GOOD.models if "small" in each.roles)
    further = replace(small, name="berth/dev/shop.small/triton@0", instance="triton@0", **changed)
    judged = replace(GOOD, models=(*GOOD.models, further))
    assert bool(unique_names.findings(judged)) is not passes


def test_the_same_role_on_two_hosts_is_two_things() -> None:
    assert not unique_names.findings(with_model("small", roles=("big",), host="beta"))


def test_a_demo_of_another_stack_is_refused() -> None:
    text = refused(unique_names, with_host(others_demos={"shop": "berth/lab"}))
    assert "berth:demo.name: demo `shop` on host `alpha` is there already, of stack berth/l" in text


def test_two_instances_of_one_name_are_refused() -> None:
    twice = replace(GOOD, instances=(*GOOD.instances, GOOD.instances[0]))
    assert "instance `triton@0` of host `alpha` is declared 2 times" in refused(unique_names, twice)


def of_its_own(unit: str, **more: Any) -> Judged:
    """The stack, `small` in a server of its own."""
    judged = with_model("small", instance=unit, engine="vllm")
    return replace(judged, hosts={"alpha": replace(judged.hosts["alpha"], **more)})


def test_a_unit_that_another_demo_and_role_come_to_is_refused() -> None:
    others = {"shop-eu-small": "berth/lab/shop-eu: small"}
    text = refused(unique_names, of_its_own("shop-eu-small", others_units=others))
    assert "unit `shop-eu-small` of berth/dev/shop is on host `alpha` already, of berth/lab" in text
    assert not unique_names.findings(of_its_own("shop-small", others_units=others))


@pytest.mark.parametrize(
    "unit", [gateway_unit.STEM, adapter_unit.STEM, "nvidia-persistenced", "systemd-networkd"]
)
def test_a_unit_of_the_host_itself_is_refused(unit: str) -> None:
    assert f"unit `{unit}` of berth/dev/shop" in refused(unique_names, of_its_own(unit))


def test_a_triton_instance_serves_several_stacks() -> None:
    assert not unique_names.findings(with_host(others_units={"triton@2": "berth/lab/toys"}))
