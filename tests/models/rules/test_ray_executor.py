"""The executor of a model on several GPUs."""

from __future__ import annotations

from dataclasses import replace

from models.judged import Judged
from models.rules import ray_executor
from tests.models.rules.plans import GOOD, refused, warned, with_model

OLD = "nvcr.io/nvidia/tritonserver:25.08-vllm-python-py3"


def with_ray() -> Judged:
    models = tuple(replace(each, image=OLD) for each in GOOD.models)
    return replace(GOOD, models=models)


def test_ray_passes_where_the_release_holds_it() -> None:
    assert not ray_executor.findings(with_ray())


def test_another_executor_is_refused_with_what_to_set() -> None:
    mp = with_model("big", args={"distributed_executor_backend": "mp"}, image=OLD)
    text = refused(ray_executor, mp)
    assert "big spans 2 GPUs with the `mp` executor" in text
    assert "set `executor: ray` in catalog/big.yaml" in text


def test_none_told_is_vllms_own_choice_which_is_not_ray() -> None:
    none = with_model("big", args={"distributed_executor_backend": None}, image=OLD)
    assert "the `mp` executor" in refused(ray_executor, none)


def test_a_release_that_may_lack_ray_is_a_warning() -> None:
    assert "may not hold it" in warned(ray_executor, GOOD)
