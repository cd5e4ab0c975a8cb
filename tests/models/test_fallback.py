"""What a role declares as its fallback, and what is refused of it at preview."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from components.resources.judged import of_plan
from models.judging import judge
from models.plan import Plan
from models.refusal import Refusals
from models.releases.tables import Releases
from tests.declarations import G0, G1, SECTIONS, plan_of

SMALL = {"model": "small", "instance": "triton@0"}
NONE = Releases((), (), (), (), ())


def with_fallback(fallback: dict[str, Any] | None, **roles: dict[str, Any]) -> dict[str, Any]:
    """The sections, Architect and Worker with a fallback, and more roles."""
    sections = copy.deepcopy(SECTIONS)
    for role in ("architect", "worker"):
        if fallback:
            sections["demo"]["roles"][role]["fallback"] = fallback
    sections["demo"]["roles"] |= roles
    return sections


def refusals(plan: Plan) -> list[str]:
    return [str(each) for each in judge(of_plan(plan, {}, NONE, {}))[0]]


def refused(sections: dict[str, Any], **catalog: dict[str, Any]) -> str:
    with pytest.raises(Refusals) as caught:
        plan_of(sections, **catalog)
    return str(caught.value)


def test_a_fallback_is_a_load_of_its_own_that_stands_in_for_the_first() -> None:
    plan = plan_of(with_fallback(SMALL))
    first = plan.roles["architect"]
    fallback = plan.fallback_of(first)
    assert fallback is not None
    assert (fallback.model, fallback.served_by) == ("small", "triton@0")
    assert fallback.roles == ("architect", "worker")
    assert fallback.instead_of == first.claim_name
    assert plan.fallback_of(plan.roles["sentry"]) is None
    assert {claim.gpu for claim in plan.claims if claim.instead_of} == {G0}


def test_its_instance_is_the_roles_own_unless_it_says_otherwise() -> None:
    wide = {"weights": "small", "max_model_len": 8192, "tensor_parallel_size": 2}
    plan = plan_of(with_fallback({"model": "other"}), other=wide)
    fallback = plan.fallback_of(plan.roles["architect"])
    assert fallback is not None
    assert [gpu.uuid for gpu in fallback.instance.gpus] == [G0, G1]


def test_a_plan_with_a_fallback_on_its_models_gpus_passes_the_rules() -> None:
    said = "\n".join(refusals(plan_of(with_fallback(SMALL))))
    assert "claimed by" not in said
    assert "role `architect`" not in said


def test_another_role_on_a_fallbacks_gpu_is_refused() -> None:
    sections = with_fallback(None)
    sections["instances"]["triton@1"] = sections["instances"]["triton@0"] | {
        "gpus": [G1],
        "http_port": 8001,
        "metrics_port": 8101,
    }
    roles: dict[str, dict[str, Any]] = {
        "guard": {"model": "small", "instance": "triton@0"},
        "judge": {"model": "small", "instance": "triton@1"},
    }
    sections["demo"]["roles"] = roles
    tiny = {"weights": "small", "max_model_len": 1024, "gpu_memory_utilization": 0.2}
    assert not [each for each in refusals(plan_of(sections, tiny=tiny)) if "claimed by" in each]
    roles["judge"]["fallback"] = {"model": "tiny", "instance": "triton@0"}
    (said,) = [each for each in refusals(plan_of(sections, tiny=tiny)) if "claimed by" in each]
    assert "judge (tiny on triton@0), the fallback" in said
    assert "guard (small on triton@0)" in said


def test_a_fallback_of_the_wrong_width_is_refused_at_the_fallback() -> None:
    said = [each for each in refusals(plan_of(with_fallback({"model": "small"})))
            if "berth:demo.roles.architect.fallback" in each]  # fmt: skip
    assert said


def test_an_engine_that_holds_its_model_for_life_cannot_stand_by() -> None:
    said = refused(with_fallback(SMALL | {"engine": "vllm"}))
    assert "`vllm` holds one model for life, so it cannot stand by" in said
    assert "berth:demo.roles.architect.fallback.engine" in said
    assert "`triton-vllm`" in said


def test_a_model_that_the_catalog_does_not_have_is_refused() -> None:
    assert "berth:demo.roles.architect.fallback.model: no model `x`" in refused(
        with_fallback(SMALL | {"model": "x"})
    )


def test_an_instance_that_is_not_declared_is_refused() -> None:
    assert "fallback.instance: no instance `triton@9`" in refused(
        with_fallback(SMALL | {"instance": "triton@9"})
    )


def test_roles_that_share_a_load_share_its_fallback() -> None:
    sections = with_fallback(SMALL)
    del sections["demo"]["roles"]["worker"]["fallback"]
    said = refused(sections)
    assert "name different fallbacks (architect: small, worker: none)" in said
    assert "give each of them the same `fallback`" in said


def test_a_model_is_not_its_own_fallback() -> None:
    assert "cannot be its own fallback" in refused(with_fallback({"model": "big"}))


def test_a_fallback_on_another_host_is_refused() -> None:
    said = refused(with_fallback({"model": "small", "instance": "triton@b0"}))
    assert "triton@b0 is on host beta, the role on alpha" in said


def test_a_load_that_serves_another_role_cannot_stand_by() -> None:
    said = refused(with_fallback(SMALL, guard={"model": "small", "instance": "triton@0"}))
    assert "small on triton@0 is the model of guard already" in said
