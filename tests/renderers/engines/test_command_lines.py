"""The exact command line of each engine's own server, and what it reads beside its weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.renderers.engines import SERVERS
from models.engine import TRAITS
from sandbox.trtllm_serve.command_line import command as trtllm_command
from sandbox.trtllm_serve.settings import Settings, settings
from sandbox.vllm_serve import flags
from sandbox.vllm_serve.command_line import parse
from tests.renderers.engines.served import placed


def test_vllm_answers_to_all_its_roles_with_what_the_catalog_says() -> None:
    assert SERVERS["vllm"].command(placed("vllm")) == [
        "vllm", "serve", "/data/triton/weights/big-nvfp4",
        "--host", "0.0.0.0",
        "--port", "8000",
        "--served-model-name", "architect", "worker",
        "--dtype", "auto",
        "--max-model-len", "4096",
        "--gpu-memory-utilization", "0.9",
        "--tensor-parallel-size", "2",
        "--pipeline-parallel-size", "1",
        "--quantization", "modelopt_fp4",
        "--seed", "0",
    ]  # fmt: skip


def test_vllms_arguments_become_flags_as_its_parser_takes_them() -> None:
    given = {
        "enforce_eager": True,
        "enable_prefix_caching": False,
        "limit_mm_per_prompt": {"image": 0},
        "chat_template": None,
        "middleware": ["a.b", "c.d"],
    }
    words = SERVERS["vllm"].command(placed("vllm", engine_args=given))
    assert list(words[words.index("modelopt_fp4") + 1 :]) == [
        "--no-enable-prefix-caching",
        "--enforce-eager",
        "--limit-mm-per-prompt", '{"image": 0}',
        "--middleware", "a.b", "c.d",
    ]  # fmt: skip


@pytest.mark.parametrize("name", [*flags.SWITCHES, *flags.MARKS])
@pytest.mark.parametrize("value", [True, False])
def test_vllms_parser_takes_every_truth_value_either_way(name: str, value: bool) -> None:
    key = name.replace("-", "_")
    words = SERVERS["vllm"].command(placed("vllm", engine_args={key: value}))
    assert getattr(parse(list(words[2:])), key, False) is value


def test_vllm_spreads_over_its_gpus_by_processes_unless_ray_is_asked_for() -> None:
    assert "--distributed-executor-backend" not in SERVERS["vllm"].command(placed("vllm"))
    words = SERVERS["vllm"].command(placed("vllm", executor="ray"))
    assert words[words.index("--distributed-executor-backend") + 1] == "ray"


def test_trtllm_serve_is_given_only_flags_that_all_its_releases_know() -> None:
    given = {"max_batch_size": 8, "trust_remote_code": True, "enable_chunked_prefill": True}
    placement = placed("trtllm-serve", trtllm_args=given)
    assert SERVERS["trtllm-serve"].command(placement) == [
        "trtllm-serve", "serve", "/data/triton/weights/big-nvfp4",
        "--host", "0.0.0.0",
        "--port", "8000",
        "--backend", "pytorch",
        "--tp_size", "2",
        "--pp_size", "1",
        "--max_seq_len", "4096",
        "--kv_cache_free_gpu_memory_fraction", "0.9",
        "--extra_llm_api_options", "/etc/berth/servers/shop-architect.yaml",
        "--max_batch_size", "8",
        "--trust_remote_code",
    ]  # fmt: skip
    (options,) = SERVERS["trtllm-serve"].files(placement).values()
    assert json.loads(options) == {
        "enable_chunked_prefill": True,
        "enable_iter_perf_stats": True,
        "return_perf_metrics": True,
    }


@pytest.mark.parametrize("told", [{}, {"kv_cache_config": {"dtype": "fp8"}}])
def test_trtllms_share_of_memory_is_the_catalogs_whatever_else_its_cache_is_told(
    told: dict[str, Any], tmp_path: Path
) -> None:
    placement = placed("trtllm-serve", trtllm_args=told, gpu_memory_utilization=0.6)
    (options,) = SERVERS["trtllm-serve"].files(placement).values()
    file = tmp_path / "options.yaml"
    file.write_text(options)
    words = list(SERVERS["trtllm-serve"].command(placement)[1:])
    words[words.index("--extra_llm_api_options") + 1] = str(file)
    seen: list[Settings] = []
    program = trtllm_command(lambda options: seen.append(settings(options)))
    program.main(words, standalone_mode=False)
    assert [each.memory_fraction for each in seen] == [0.6]
    assert json.loads(options).get("kv_cache_config", {}).get("dtype") == ("fp8" if told else None)


def test_tritons_frontend_loads_just_its_model_and_opens_no_kserve_port() -> None:
    assert SERVERS["triton-openai"].command(placed("triton-openai")) == [
        "python3", "/opt/tritonserver/python/openai/openai_frontend/main.py",
        "--model-repository=/data/triton/models",
        "--model-control-mode=explicit",
        "--load-model=shop.big",
        "--backend=vllm",
        "--tokenizer=/data/triton/weights/big-nvfp4",
        "--host=0.0.0.0",
        "--openai-port=9000",
        "--default-max-tokens=16",
    ]  # fmt: skip


def test_before_the_batcher_it_differs_in_the_requests_that_it_forms() -> None:
    vllm, batcher = (
        SERVERS[engine].command(placed(engine))
        for engine in ("triton-openai", "triton-openai-batcher")
    )
    assert [word for word in batcher if word not in vllm] == ["--backend=tensorrtllm"]
    assert len(batcher) == len(vllm)


def test_on_several_gpus_the_batcher_behind_the_frontend_starts_its_workers_itself() -> None:
    wide = placed("triton-openai-batcher")
    assert SERVERS[wide.engine].environment(wide)["TRTLLM_ORCHESTRATOR"] == "1"
    narrow = replace(wide, catalog=wide.catalog.model_copy(update={"tensor_parallel_size": 1}))
    assert "TRTLLM_ORCHESTRATOR" not in SERVERS[wide.engine].environment(narrow)


@pytest.mark.parametrize("engine", sorted(SERVERS))
def test_no_server_phones_home(engine: str) -> None:
    environment = SERVERS[engine].environment(placed(engine))
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert any(name.endswith("NO_USAGE_STATS") for name in environment)


def test_each_engine_with_one_model_for_life_has_a_renderer() -> None:
    assert set(SERVERS) == {name for name, traits in TRAITS.items() if traits.for_life}
