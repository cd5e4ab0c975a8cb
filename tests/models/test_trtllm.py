"""What of a catalog entry is refused under TensorRT-LLM's engines, before there is a plan."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from components.renderers import server_container
from models.refusal import Refusals
from tests.declarations import SECTIONS, plan_of
from tests.renderers.engines.served import IMAGES


def refused(engine: str, role: str = "sentry", **small: Any) -> str:
    """What the plan of a role under an engine says; `small` changes its catalog entry."""
    sections = copy.deepcopy(SECTIONS) | {"images": IMAGES}
    sections["demo"]["roles"][role] |= {"engine": engine}
    entry = {"weights": "small", "max_model_len": 8192}
    with pytest.raises(Refusals) as caught:
        plan_of(sections, small=entry | small)
    (refusal,) = caught.value.refusals
    assert "Nothing was touched." in str(refusal)
    assert refusal.fix
    return str(refusal)


@pytest.mark.parametrize(
    ("engine", "entry", "says"),
    [
        ("triton-batcher", {}, "or take `triton-llmapi`"),
        ("triton-openai-batcher", {}, "or take `trtllm-serve`"),
        ("triton-llmapi", {"trtllm_args": {"max_seq_len": 9}}, "set `max_model_len` beside it"),
        (
            "triton-llmapi",
            {"trtllm_args": {"kv_cache_config": {"free_gpu_memory_fraction": 0.5}}},
            "set `gpu_memory_utilization` beside it",
        ),
        ("triton-llmapi", {"trtllm_args": {"kv_cache_config": "fp8"}}, "is a map"),
        ("triton-llmapi", {"trtllm_args": {"triton_config": {}}}, "could not stream"),
        (
            "triton-batcher",
            {"engine_dir": "built", "trtllm_args": {"kv_cache_reuse": True}},
            "`kv_cache_reuse` is no parameter of TensorRT-LLM's batcher",
        ),
        (
            "triton-batcher",
            {"engine_dir": "built", "config_pbtxt": 'backend: "python"'},
            "has four configurations",
        ),
        (
            "triton-openai-batcher",
            {"engine_dir": "built", "trtllm_args": {"kv_cache_reuse": True}},
            "`kv_cache_reuse` is no parameter of TensorRT-LLM's batcher",
        ),
        ("triton-openai-batcher", {"engine_dir": "built", "shared_mib": 9000}, "cannot keep to"),
        ("triton-llmapi", {"shared_mib": 9000}, "cannot keep to `shared_mib`"),
    ],
)
def test_what_an_engine_would_not_read_or_contradicts_itself_is_refused(
    engine: str, entry: dict[str, Any], says: str
) -> None:
    assert says in refused(engine, **entry)


def test_the_batcher_on_two_gpus_has_to_start_workers_itself() -> None:
    wide = {"weights": "big", "tensor_parallel_size": 2, "max_model_len": 4096}
    sections = copy.deepcopy(SECTIONS)
    for role in ("architect", "worker"):
        sections["demo"]["roles"][role] |= {"engine": "triton-batcher"}
    with pytest.raises(Refusals) as caught:
        plan_of(sections, big=wide | {"engine_dir": "built"})
    assert "TRTLLM_ORCHESTRATOR" in caught.value.refusals[0].fix
    sections["instances"]["triton@wide-01"]["environment"] = {"TRTLLM_ORCHESTRATOR": "1"}
    assert plan_of(sections, big=wide | {"engine_dir": "built"}).roles["architect"]


def test_a_server_of_its_own_is_told_to_start_workers_unless_its_instance_says_otherwise() -> None:
    sections = copy.deepcopy(SECTIONS) | {"images": IMAGES}
    for role in ("architect", "worker"):
        sections["demo"]["roles"][role] |= {"engine": "triton-openai-batcher"}
    wide = {"weights": "big", "tensor_parallel_size": 2, "max_model_len": 4096}
    placement = plan_of(sections, big=wide | {"engine_dir": "built"}).roles["architect"]
    assert "TRTLLM_ORCHESTRATOR=1" in server_container.environment(placement)
    sections["instances"]["triton@wide-01"]["environment"] = {"TRTLLM_ORCHESTRATOR": "0"}
    with pytest.raises(Refusals, match="starts a worker for each only if told to"):
        plan_of(sections, big=wide | {"engine_dir": "built"})


def test_each_familys_arguments_are_its_own() -> None:
    small = {"weights": "small", "max_model_len": 8192, "engine_dir": "built"}
    args = {"engine_args": {"seed": 0}, "trtllm_args": {"max_beam_width": 2}}
    for engine in ("triton-vllm", "triton-batcher"):
        sections = copy.deepcopy(SECTIONS)
        sections["demo"]["roles"]["sentry"] |= {"engine": engine}
        placement = plan_of(sections, small=small | args).roles["sentry"]
        told = placement.catalog.further_args(placement.engine)
        assert told == args["engine_args" if engine == "triton-vllm" else "trtllm_args"]


def with_guard(small: str, guard: str) -> dict[str, Any]:
    """Sentry, and beside it a role of the same model on another instance, each on an engine."""
    sections = copy.deepcopy(SECTIONS) | {"images": IMAGES}
    ports = {"http_port": 8001, "metrics_port": 8101}
    sections["instances"]["triton@b1"] = sections["instances"]["triton@b0"] | ports
    sections["demo"]["roles"]["sentry"] |= {"engine": small}
    sections["demo"]["roles"]["guard"] = {
        "model": "small",
        "instance": "triton@b1",
        "engine": guard,
    }
    return sections


def test_one_entry_is_not_two_engines() -> None:
    with pytest.raises(Refusals) as caught:
        plan_of(with_guard("triton-vllm", "triton-llmapi"))
    assert "one entry `shop.small`" in str(caught.value.refusals[0])
    small = {"weights": "small", "max_model_len": 8192, "engine_dir": "built"}
    with pytest.raises(Refusals, match=r"one entry `shop\.small`"):
        plan_of(with_guard("triton-openai", "triton-openai-batcher"), small=small)


def test_with_and_without_tritons_frontend_the_batcher_runs_from_one_entry() -> None:
    small = {"weights": "small", "max_model_len": 8192, "engine_dir": "built"}
    plan = plan_of(with_guard("triton-batcher", "triton-openai-batcher"), small=small)
    assert plan.roles["sentry"].entry == plan.roles["guard"].entry
