"""Names that mean nothing are refused, with the path, the cause and a way out."""

from __future__ import annotations

from typing import Any

import pytest

from models.refusal import Refusal
from tests.declarations import G0, G1, G9, SECTIONS, changed, plan_of


def refusal(path: str, value: Any, **catalog: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as refused:
        plan_of(changed(path, value), **catalog)
    return str(refused.value)


def test_roles_on_the_same_model_and_instance_share_one_load() -> None:
    plan = plan_of(SECTIONS)
    assert [placement.roles for placement in plan.placements] == [
        ("architect", "worker"),
        ("sentry",),
    ]
    assert plan.roles["architect"] is plan.roles["worker"]


def test_a_repository_entry_is_named_after_its_demo() -> None:
    assert plan_of(SECTIONS).roles["sentry"].entry == "shop.small"


def test_a_load_claims_its_share_of_each_of_its_gpus() -> None:
    claims = plan_of(SECTIONS).roles["architect"].claims
    assert [(claim.gpu, claim.mib) for claim in claims] == [(G0, 20309), (G1, 20309)]


def test_a_gpu_that_no_host_has_is_refused() -> None:
    unknown = "GPU-00000000-0000-0000-0000-00000000000f"
    text = refusal("instances/triton@0/gpus", [unknown])
    assert f"berth:instances.triton@0.gpus[0]: no host has {unknown}" in text
    assert G0 in text


def test_a_gpu_of_another_host_is_refused() -> None:
    text = refusal("instances/triton@0/gpus", [G9])
    assert "is a GPU of host `beta`, the instance runs on `alpha`" in text


def test_a_gpu_listed_twice_in_an_instance_is_refused() -> None:
    text = refusal("instances/triton@wide-01/gpus", [G0, G0])
    assert f"berth:instances.triton@wide-01.gpus[1]: {G0} is listed twice" in text


def test_a_gpu_listed_twice_among_hosts_is_refused() -> None:
    text = refusal("hosts/beta/gpus/0/uuid", G0)
    assert f"{G0} is listed twice" in text
    assert "berth:hosts.beta.gpus[0]" in text


def test_an_instance_on_no_declared_host_is_refused() -> None:
    text = refusal("instances/triton@0/host", "gamma")
    assert "berth:instances.triton@0.host: no host `gamma`" in text
    assert "alpha, beta" in text


def test_a_role_naming_no_catalog_model_is_refused() -> None:
    text = refusal("demo/roles/sentry/model", "tiny")
    assert "berth:demo.roles.sentry.model: no model `tiny` in the catalog" in text
    assert "big, small" in text


def test_a_role_naming_no_instance_is_refused() -> None:
    text = refusal("demo/roles/sentry/instance", "triton@7")
    assert "berth:demo.roles.sentry.instance: no instance `triton@7`" in text
    assert "triton@0, triton@wide-01, triton@b0" in text


def test_an_engine_argument_that_berth_renders_itself_is_refused() -> None:
    text = refusal(
        "demo/roles/sentry/model",
        "odd",
        odd={"weights": "w", "max_model_len": 1, "engine_args": {"tensor_parallel_size": 4}},
    )
    assert "catalog/odd.yaml: engine_args.tensor_parallel_size" in text
