"""What is rendered for TensorRT-LLM inside Triton: an entry of its own, or one with parts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from components.renderers import entry
from components.renderers.engines import ENTRIES
from models.engine import BATCHER_PARTS, TRAITS, part_name
from models.plan import Placement
from models.text_format import Message, parse
from tests.declarations import plan_of
from tests.renderers.engines.served import placed, sections

BUILT: dict[str, Any] = {"engine_dir": "big-built", "quantization": None}


def batcher(**big: Any) -> Placement:
    """Architect by the batcher, on prebuilt engines of two GPUs."""
    declared = sections("triton-batcher")
    declared["instances"]["triton@wide-01"]["environment"] = {"TRTLLM_ORCHESTRATOR": "1"}
    catalog = {"weights": "big", "tensor_parallel_size": 2, "max_model_len": 4096}
    return plan_of(declared, big=catalog | BUILT | big).roles["architect"]


def told(placement: Placement, part: str) -> dict[str, str]:
    """The parameters of a part."""
    text = entry.parts(placement)[part_name(placement.entry, part)]["config.pbtxt"]
    found = {}
    for each in parse(text).all("parameters"):
        assert isinstance(each, Message)
        (value,) = each.all("value")
        assert isinstance(value, Message)
        found[str(each.all("key")[0])] = str(value.all("string_value")[0])
    return found


def test_each_engine_that_runs_from_an_entry_has_a_renderer() -> None:
    assert set(ENTRIES) == {name for name, traits in TRAITS.items() if traits.entry}


def test_the_llm_api_is_told_what_the_catalog_says_and_may_stream() -> None:
    args = {"max_batch_size": 8, "kv_cache_config": {"dtype": "fp8"}}
    files = entry.entry_files(placed("triton-llmapi", trtllm_args=args))
    assert json.loads(files["1/model.yaml"]) == {
        "model": "/data/triton/weights/big-nvfp4",
        "backend": "pytorch",
        "dtype": "auto",
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 1,
        "max_seq_len": 4096,
        "max_batch_size": 8,
        "kv_cache_config": {"dtype": "fp8", "free_gpu_memory_fraction": 0.9},
        "triton_config": {"max_batch_size": 0, "decoupled": True},
    }


def test_the_llm_apis_configuration_leaves_batching_and_decoupling_to_its_yaml() -> None:
    text = entry.entry_files(placed("triton-llmapi"))["config.pbtxt"]
    assert 'backend: "python"' in text
    assert "instance_group [ { count: 1, kind: KIND_CPU } ]" in text
    assert "max_batch_size" not in text
    assert "decoupled" not in text


def test_code_is_the_images_own() -> None:
    model = entry.entry_files(placed("triton-llmapi"))["1/model.py"]
    assert 'PLACE = "/app/all_models/llmapi/tensorrt_llm/1"' in model
    compile(model, "model.py", "exec")


def test_the_batchers_parts_are_the_demos_and_only_its_ensemble_is_called() -> None:
    placement = batcher()
    names = [part_name(placement.entry, part) for part in BATCHER_PARTS]
    assert set(entry.parts(placement)) == set(names)
    assert all(name.startswith("shop.") for name in names)
    text = entry.entry_files(placement)["config.pbtxt"]
    assert 'platform: "ensemble"' in text
    for name in names:
        assert f'model_name: "{name}"' in text


def test_a_part_is_named_as_no_model_can_be() -> None:
    assert part_name("shop.a", "preprocessing") == "shop._preprocessing.a"


def test_the_batcher_runs_prebuilt_engines_with_the_tokenizer_of_the_weights() -> None:
    placement = batcher(gpu_memory_utilization=0.8, trtllm_args={"enable_kv_cache_reuse": True})
    engine = told(placement, "tensorrt_llm")
    assert engine["gpt_model_path"] == "/data/triton/weights/big-built"
    assert engine["gpt_model_type"] == "inflight_fused_batching"
    assert engine["kv_cache_free_gpu_mem_fraction"] == "0.8"
    assert engine["enable_kv_cache_reuse"] == "true"
    for part in ("preprocessing", "postprocessing"):
        assert told(placement, part)["tokenizer_dir"] == "/data/triton/weights/big"


def test_behind_tritons_frontend_the_entries_are_the_very_same() -> None:
    direct, behind = batcher(), placed("triton-openai-batcher", **BUILT | {"weights": "big"})
    behind = replace(behind, catalog=direct.catalog)
    assert entry.parts(behind) == entry.parts(direct)
    assert entry.entry_files(behind) == entry.entry_files(direct)


def test_pieces_of_a_stream_cannot_overtake_each_other() -> None:
    files = entry.parts(batcher())[part_name("shop.big", "postprocessing")]
    assert "instance_group [ { count: 1, kind: KIND_CPU } ]" in files["config.pbtxt"]


def test_every_configuration_can_be_read() -> None:
    placement = batcher()
    for files in (entry.entry_files(placement), *entry.parts(placement).values()):
        assert parse(files["config.pbtxt"]).all("max_batch_size") == ["64"]


def test_the_digest_changes_with_a_part() -> None:
    assert entry.digest(batcher()) != entry.digest(batcher(trtllm_args={"max_beam_width": 2}))
    assert entry.digest(batcher()) != entry.digest(batcher(engine_dir="other"))


def test_the_rules_are_told_by_vllms_names() -> None:
    for placement in (placed("triton-llmapi"), batcher()):
        told_rules = json.loads(entry.entry_files(placement)["1/model.json"])
        assert told_rules["max_model_len"] == 4096
        assert told_rules["tensor_parallel_size"] == 2
