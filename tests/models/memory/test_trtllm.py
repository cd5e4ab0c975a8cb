"""TensorRT-LLM's KV cache is a share of what is free after the weights, not of the whole GPU."""

from __future__ import annotations

import math

import pytest

from models.engine import BATCHER_ENTRY
from models.memory import Asked, memory_plan
from models.memory.trtllm import by_vllms_names
from models.rules import memory_fit
from tests.models.memory.published import dense
from tests.models.rules.plans import WEIGHTS, refused, warned, with_model

L4 = 22_565
LLAMA = dense("llama", 32, 4096, 14336, 32, 8, 128256)
WINDOWED = dense(
    "mistral", 32, 4096, 14336, 32, 8, 32000, sliding_window=4096, max_position_embeddings=131072
)


def asked(share: float | None = 0.9, length: int = 8192, **args: object) -> Asked:
    return Asked(
        length,
        gpu_memory_utilization=share,
        engine_args=by_vllms_names({"max_num_tokens": 2048, **args}),
        engine="trtllm",
    )


def test_the_budget_is_the_weights_the_overhead_and_the_share_of_the_rest() -> None:
    (gpu,) = memory_plan(LLAMA, asked(0.5), [L4]).gpus
    first = gpu.weights_mib + gpu.overhead_mib
    assert gpu.budget_mib == first + math.floor(0.5 * (L4 - first))
    assert gpu.held_mib == gpu.budget_mib
    assert gpu.spare_mib == gpu.budget_mib - first - gpu.kv_mib


def test_a_share_that_vllm_could_not_hold_its_weights_in_may_do() -> None:
    by_vllm = Asked(4096, gpu_memory_utilization=0.6, vllm="0.19.1")
    assert memory_plan(LLAMA, by_vllm, [L4]).fits is False
    assert memory_plan(LLAMA, asked(0.6, 4096), [L4]).fits is True


def test_nobody_saying_a_share_it_is_nine_tenths() -> None:
    assert memory_plan(LLAMA, asked(None), [L4]).gpus == memory_plan(LLAMA, asked(0.9), [L4]).gpus


def test_weights_that_leave_nothing_free_do_not_fit() -> None:
    plan = memory_plan(LLAMA, asked(), [15_000])
    assert (plan.fits, plan.largest_max_model_len) == (False, 0)


def test_it_is_shown_what_the_share_is_of() -> None:
    said = memory_plan(LLAMA, asked(), [L4]).shown()
    assert "0.9 of the rest of 22565" in said


def test_an_fp8_cache_takes_half() -> None:
    full, half = (
        memory_plan(LLAMA, asked(kv_cache_config=told), [L4]).gpus[0].kv_mib
        for told in ({}, {"dtype": "fp8"})
    )
    assert half == pytest.approx(full / 2, abs=2)


def test_where_only_windows_make_it_fit_nobody_knows_unless_they_are_told() -> None:
    plan = memory_plan(WINDOWED, asked(length=120_000), [L4])
    assert plan.fits is None
    assert "max_attention_window" in plan.unknown
    told = asked(length=120_000, kv_cache_config={"max_attention_window": [4096]})
    assert memory_plan(WINDOWED, told, [L4]).fits is True
    assert memory_plan(WINDOWED, asked(length=8192), [L4]).fits is True


def test_the_rule_judges_a_role_by_its_own_engine() -> None:
    share = {"gpu_memory_utilization": 0.3}
    assert "does not fit" in refused(memory_fit, with_model(args=share))
    assert not memory_fit.findings(with_model(args=share, engine="triton-llmapi"))
    assert not memory_fit.findings(with_model(args=share, engine="trtllm-serve"))


def test_what_does_not_fit_is_refused_with_the_context_that_does() -> None:
    long = {"max_model_len": 100_000_000}
    text = refused(memory_fit, with_model(args=long, engine="triton-llmapi"))
    assert "of the rest of 22565" in text
    assert "set max_model_len to " in text


@pytest.mark.parametrize("engine", BATCHER_ENTRY)
def test_prebuilt_engines_are_a_warning(engine: str) -> None:
    text = warned(memory_fit, with_model(engine=engine, weights=WEIGHTS))
    assert "its engines are prebuilt" in text
