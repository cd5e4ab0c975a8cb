"""Where an image is named, a build may be."""

from __future__ import annotations

from typing import Any

import pytest

from models.build import PlannedBuild
from models.catalog import CatalogModel
from models.plan import Plan
from models.planning import make_plan
from models.refusal import Refusals
from models.stack import StackConfig
from models.validation import parse
from tests.declarations import CATALOG
from tests.renderers.engines.served import sections

BUILD = PlannedBuild(
    "newer", "berth-build/newer:0a", "serving/newer", "Dockerfile", {}, ("a:1",), {}
)


def plan_of(declared: dict[str, Any], **catalog: dict[str, Any]) -> Plan:
    entries = {
        name: parse(CatalogModel, entry, f"catalog/{name}.yaml")
        for name, entry in (CATALOG | catalog).items()
    }
    config = parse(StackConfig, declared, "berth:")
    return make_plan("test", config, entries, known_models=entries, builds={"newer": BUILD})


def test_an_engines_image_may_be_a_build() -> None:
    plan = plan_of(sections("vllm") | {"images": {"vllm": "build:newer"}})
    server = plan.roles["architect"].server
    assert server is not None
    assert server.image == BUILD.reference
    assert plan.builds[server.image] is BUILD


def test_a_catalog_entrys_image_may_be_a_build() -> None:
    entry = {"weights": "small", "max_model_len": 8192, "engine": "vllm", "image": "build:newer"}
    server = plan_of(sections("vllm"), small=entry).roles["sentry"].server
    assert server is not None
    assert server.image == BUILD.reference


def test_an_instances_image_may_be_a_build() -> None:
    declared = sections("triton-vllm")
    declared["instances"]["triton@0"]["image"] = "build:newer"
    images = {each.name: each.declared.image for each in plan_of(declared).instances}
    assert images["triton@0"] == BUILD.reference
    assert images["triton@b0"] == "triton@sha256:aa"


@pytest.mark.parametrize("where", ["berth:images.vllm", "berth:instances.triton@0.image",
                                   "catalog/small.yaml: image"])  # fmt: skip
def test_an_unknown_build_is_refused_where_it_is_named(where: str) -> None:
    declared, catalog = sections("vllm"), {}
    if where.startswith("catalog"):
        entry = {"weights": "s", "max_model_len": 8192, "engine": "vllm", "image": "build:never"}
        catalog = {"small": entry}
    elif "images" in where:
        declared["images"] = declared["images"] | {"vllm": "build:never"}
    else:
        declared["instances"]["triton@0"]["image"] = "build:never"
    with pytest.raises(Refusals, match="no build `never`") as refused:
        plan_of(declared, **catalog)
    assert f"{where}: no build `never`" in str(refused.value)
    assert "builds declared: newer." in str(refused.value)
