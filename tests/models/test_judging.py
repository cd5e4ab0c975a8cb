"""All rules together: none raises for anything, and none minds the order."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.judged import (
    Judged,
    JudgedGpu,
    JudgedHost,
    JudgedInstance,
    JudgedModel,
    Mounted,
    Published,
)
from models.judging import RULES, judge
from models.overlap import Claim, Foreign
from models.text_format import Unreadable, parse
from models.weights import TensorGroup, Weights
from tests.models.rules.plans import (
    CONFIG,
    GOOD,
    IMAGE,
    RELEASES,
    UNIT,
    WEIGHTS,
    with_host,
    with_model,
)

names = st.sampled_from(["alpha", "beta", "", "triton@0", "shop", "big"]) | st.text(max_size=5)
uuids = st.sampled_from(["GPU-0", "GPU-1", ""]) | st.text(max_size=4)
whole = st.integers() | st.integers(0, 70000)
paths = st.sampled_from(["/", "/data/triton", "/data/triton/weights", "..", ""]) | st.text()
images = st.sampled_from([IMAGE, "own:1", "", IMAGE.replace("26.06", "26.03")]) | st.text()
plain: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
ARGS = (
    "model", "max_model_len", "tensor_parallel_size", "pipeline_parallel_size", "dtype",
    "gpu_memory_utilization", "quantization", "distributed_executor_backend", "kv_cache_dtype",
    "max_num_batched_tokens", "block_size", "hf_token",
)  # fmt: skip
arguments = st.dictionaries(st.sampled_from(ARGS), plain | st.integers(-1, 5)) | st.dictionaries(
    st.text(), plain
)
config = st.sampled_from([WEIGHTS.config, {}, {"model_type": "gemma4"}]) | st.dictionaries(
    st.sampled_from(sorted(WEIGHTS.config)) | st.text(), plain
)
groups = st.sampled_from([WEIGHTS.groups, ()]) | st.tuples(
    st.builds(TensorGroup, name=st.text(), bytes=st.integers(0), count=st.integers(1))
)
weights = st.none() | st.builds(
    Weights, config=config, groups=groups, trouble=st.lists(st.text(), max_size=1).map(tuple)
)
claims = st.lists(
    st.builds(Claim, host=names, gpu=uuids, name=names, owner=names, mib=whole), max_size=3
).map(tuple)
foreign = st.lists(st.builds(Foreign, names, whole, whole), max_size=2).map(tuple)
gpus = st.lists(st.builds(JudgedGpu, uuids, whole, whole, whole, foreign), max_size=3).map(tuple)
hosts = st.dictionaries(
    names,
    st.builds(
        JudgedHost,
        name=names,
        gpus=gpus,
        image_references=st.sampled_from(["tag", "digest", "?"]),
        data_dir=paths,
        driver=st.sampled_from(["", "470.57", "610.43.02"]) | st.text(),
        found=st.none() | st.dictionaries(uuids, whole),
        others=claims,
        others_roles=st.dictionaries(names, names),
        others_demos=st.dictionaries(names, names),
        taken_ports=st.dictionaries(whole, names),
    ),
    max_size=2,
)
instances = st.lists(
    st.builds(
        JudgedInstance,
        name=names,
        host=names,
        gpus=st.lists(uuids, max_size=3).map(tuple),
        image=images,
        published=st.lists(st.builds(Published, paths | names, whole, whole)).map(tuple),
        keyed=names,
        mounts=st.lists(st.builds(Mounted, paths, paths, st.booleans())).map(tuple),
        environment=st.dictionaries(st.text(), st.text()),
        unit=st.sampled_from([UNIT, ""]) | st.text(),
        network=names,
        owned=st.booleans(),
    ),
    max_size=3,
).map(tuple)
models = st.lists(
    st.builds(
        JudgedModel,
        name=names,
        owner=names,
        demo=names,
        model=names,
        entry=names,
        host=names,
        instance=names,
        roles=st.lists(names, max_size=3).map(tuple),
        claims=claims,
        config_pbtxt=st.sampled_from([CONFIG, ""]) | st.text(alphabet="{}[]<>:,'\"\\\n #ak"),
        engine_args=arguments,
        image=images,
        weights=weights,
    ),
    max_size=3,
).map(tuple)
stacks = st.builds(
    Judged,
    stack=names,
    hosts=hosts,
    instances=instances,
    models=models,
    plain_config=st.dictionaries(st.text(), plain),
    releases=st.just(RELEASES),
)
many = settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)


@many
@given(stacks)
def test_no_rule_raises_whatever_a_stack_holds(judged: Judged) -> None:
    for rule in RULES:
        for finding in rule.findings(judged):
            assert finding.refusal.cause
            assert finding.refusal.fix, finding.refusal
            assert finding.refusal.at, finding.refusal


@many
@given(stacks, st.randoms())
def test_order_makes_no_difference(judged: Judged, order: random.Random) -> None:
    def shuffled(things: Any) -> Any:
        return tuple(order.sample(things, len(things)))

    other = replace(judged, instances=shuffled(judged.instances), models=shuffled(judged.models))
    for rule in RULES:
        told, told_otherwise = (
            sorted(str(finding.refusal) for finding in rule.findings(each))
            for each in (judged, other)
        )
        assert told == told_otherwise, rule.NAME


@many
@given(st.text() | st.text(alphabet="{}[]<>:,;'\"\\\n #ab1"))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    said = "line 0"
    try:
        parse(text)
    except Unreadable as error:
        said = str(error)
    assert said.startswith("line ")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.NAME)
def test_every_rule_says_what_it_is_for(rule: Any) -> None:
    assert rule.DESCRIPTION.endswith(".")
    assert rule.REMEDY.endswith(".")


def test_fifteen_rules_guard_a_plan() -> None:
    assert len({rule.NAME for rule in RULES}) == 15


def test_what_is_certain_is_refused_and_what_is_not_is_a_warning() -> None:
    refusals, warnings = judge(with_model("small", weights=None, config_pbtxt=""))
    assert ["no instance_group" in str(each) for each in refusals] == [True]
    assert "nobody has read" in "\n".join(str(each) for each in warnings)


def test_ways_out_that_the_plan_has_verified_take_the_place_of_the_rules_advice() -> None:
    asked: list[tuple[str, ...]] = []

    def ways_out(troubled: Any) -> list[str]:
        asked.append(tuple(troubled))
        return ["move it.", "shrink it."]

    other = Claim("alpha", GOOD.hosts["alpha"].gpus[2].uuid, "x", "lab", 1)
    (refusal,), _ = judge(with_host(others=(other,)), ways_out)
    assert refusal.fix == "move it. Or: shrink it."
    assert asked == [("berth/dev/shop.small/triton@2",)]
