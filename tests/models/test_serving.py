"""Servers of one model's own, from what a role says."""

from __future__ import annotations

import pytest

from models.refusal import Refusals
from tests.declarations import G0, G1, plan_of
from tests.renderers.engines.served import placed, sections


def test_roles_that_share_a_model_share_a_server_named_after_the_first() -> None:
    plan = plan_of(sections("vllm"))
    placement = plan.roles["architect"]
    assert plan.roles["worker"] is placement
    assert placement.server is not None
    assert placement.server.unit == "shop-architect.service"
    assert placement.server.image == "vllm@sha256:bb"
    assert placement.endpoint == "http://127.0.0.1:8210/v1"
    assert [claim.gpu for claim in placement.claims] == [G0, G1]
    assert "architect+worker (big on shop-architect)" in placement.claims[0].owner


def test_an_engine_is_one_changed_line_away() -> None:
    assert plan_of(sections("triton-vllm")).roles["architect"].server is None
    assert plan_of(sections("vllm")).roles["architect"].server is not None


def test_the_catalogs_engine_serves_where_the_role_says_none() -> None:
    entry = {"weights": "small", "max_model_len": 8192, "engine": "vllm", "image": "new@sha256:ee"}
    server = plan_of(sections("vllm"), small=entry).roles["sentry"].server
    assert server is not None
    assert (server.name, server.image, server.port) == ("shop-sentry", "new@sha256:ee", 8200)


def test_an_engine_without_an_image_is_refused_with_where_to_put_one() -> None:
    declared = sections("vllm") | {"images": {}}
    with pytest.raises(Refusals, match=r"no image for engine `vllm`(.|\n)*berth:images\.vllm"):
        plan_of(declared)


def test_one_server_has_one_port() -> None:
    declared = sections("vllm", port=8300)
    declared["demo"]["roles"]["worker"]["port"] = 8301
    with pytest.raises(Refusals, match="share one server and name ports 8300 and 8301"):
        plan_of(declared)
    assert plan_of(sections("vllm", port=8300)).roles["worker"].server.port == 8300  # type: ignore[union-attr]


def test_a_port_that_triton_would_ignore_is_refused() -> None:
    with pytest.raises(Refusals, match="`port: 8300` is for engines with a server of their own"):
        plan_of(sections("triton-vllm", port=8300))


def test_trtllm_takes_the_whole_of_its_gpus_and_shares_none() -> None:
    assert {claim.mib for claim in placed("trtllm-serve").claims} == {
        gpu.cuda_mib for gpu in placed("trtllm-serve").instance.gpus
    }
    with pytest.raises(Refusals, match="`trtllm-serve` cannot keep to `shared_mib`"):
        placed("trtllm-serve", shared_mib=9000)
