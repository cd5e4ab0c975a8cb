"""An engine is split over just its GPUs, in whole heads."""

from __future__ import annotations

import pytest

from models.rules import parallelism
from tests.models.rules.plans import G0, G1, G2, GOOD, WEIGHTS, refused, with_instance, with_model


def heads(attention: int, key_value: int, **nested: object) -> object:
    config = WEIGHTS.config | {"num_attention_heads": attention, "num_key_value_heads": key_value}
    return WEIGHTS.model_copy(update={"config": {**config, **nested}})


def test_a_split_over_all_gpus_passes() -> None:
    assert not parallelism.findings(GOOD)
    pipeline = {"tensor_parallel_size": 1, "pipeline_parallel_size": 2}
    assert not parallelism.findings(with_model("big", args=pipeline))


def test_another_width_than_the_instances_is_refused_with_one_that_fits() -> None:
    text = refused(parallelism, with_model("small", args={"tensor_parallel_size": 2}))
    assert "berth:demo.roles.small.instance: small wants 2 × 1 (tensor × pipeline) = 2 GPU" in text
    assert "triton@2 has 1" in text
    assert "an instance with 2: triton@wide" in text


@pytest.mark.parametrize("size", [0, -1, "2", True, None, 1.5, [2]])
def test_a_size_that_is_no_number_is_refused(size: object) -> None:
    text = refused(parallelism, with_model("big", args={"tensor_parallel_size": size}))
    assert "set tensor_parallel_size: 2" in text


def test_heads_that_do_not_divide_are_refused_with_a_split_that_does() -> None:
    text = refused(parallelism, with_model("big", weights=heads(3, 3)))
    assert "big has 3 attention heads, which tensor_parallel_size 2 does not divide" in text
    assert "set tensor_parallel_size: 1, pipeline_parallel_size: 2" in text


def test_key_value_heads_may_be_repeated_but_not_cut() -> None:
    wide = with_instance("triton@wide", gpus=(G0, G1, G2))
    judged = with_model("big", args={"tensor_parallel_size": 3}, weights=heads(6, 2))
    judged = type(judged)(**{**judged.__dict__, "instances": wide.instances})
    assert "big has 2 key-value heads" in refused(parallelism, judged)
    assert not parallelism.findings(with_model("big", weights=heads(4, 1)))


def test_heads_of_the_text_part_count() -> None:
    nested = heads(4, 2, text_config={"num_attention_heads": 3, "num_key_value_heads": 3})
    assert "3 attention heads" in refused(parallelism, with_model("big", weights=nested))


def test_unknown_weights_are_for_other_rules() -> None:
    assert not parallelism.findings(with_model("big", weights=None))
