"""Repository entries, by their exact text."""

from __future__ import annotations

import json

from components.renderers import entry
from tests.declarations import CATALOG, SECTIONS, changed, plan_of

BIG = plan_of(SECTIONS).roles["architect"]
SMALL = plan_of(SECTIONS).roles["sentry"]


def test_config_pbtxt_asks_for_exactly_one_engine() -> None:
    digest = entry.digest(SMALL)
    assert entry.entry_files(SMALL)["config.pbtxt"] == (
        "# Rendered by Berth from catalog/small.yaml. "
        "A change made here by hand is undone by `pulumi up`.\n"
        'backend: "vllm"\n'
        "max_batch_size: 0\n"
        "model_transaction_policy { decoupled: true }\n"
        "instance_group [ { count: 1, kind: KIND_MODEL } ]\n"
        'parameters { key: "REPORT_CUSTOM_METRICS", value: { string_value: "true" } }\n'
        f'parameters {{ key: "berth_digest", value: {{ string_value: "{digest}" }} }}\n'
    )


def test_model_json_holds_the_engine_arguments_of_the_catalog() -> None:
    assert json.loads(entry.entry_files(SMALL)["1/model.json"]) == {
        "model": "/data/triton/weights/small",
        "dtype": "auto",
        "max_model_len": 8192,
        "gpu_memory_utilization": 0.5,
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
    }


def test_a_model_wider_than_one_gpu_is_run_by_ray() -> None:
    assert json.loads(entry.entry_files(BIG)["1/model.json"]) == {
        "model": "/data/triton/weights/big-nvfp4",
        "dtype": "auto",
        "max_model_len": 4096,
        "gpu_memory_utilization": 0.9,
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 1,
        "quantization": "modelopt_fp4",
        "distributed_executor_backend": "ray",
        "seed": 0,
    }


def test_weights_are_beside_the_repository_wherever_the_host_keeps_its_data() -> None:
    moved = plan_of(changed("hosts/beta/data_dir", "/srv/models")).roles["sentry"]
    assert entry.weights_path(moved) == "/srv/models/weights/small"


def test_the_digest_changes_with_what_makes_the_engine_and_with_nothing_else() -> None:
    longer = plan_of(SECTIONS, small=CATALOG["small"] | {"max_model_len": 4096}).roles["sentry"]
    patient = plan_of(SECTIONS, small=CATALOG["small"] | {"load_timeout_s": 5}).roles["sentry"]
    assert entry.digest(longer) != entry.digest(SMALL)
    assert entry.digest(patient) == entry.digest(SMALL)


def test_a_shared_model_is_told_to_keep_to_its_budget() -> None:
    without = {k: v for k, v in CATALOG["small"].items() if k != "gpu_memory_utilization"}
    shared = plan_of(SECTIONS, small=without | {"shared_mib": 14720}).roles["sentry"]
    args = json.loads(entry.entry_files(shared)["1/model.json"])
    (gpu,) = shared.instance.gpus
    assert 14203 < args["gpu_memory_utilization"] * gpu.cuda_mib <= 14720 - 512


def test_an_engine_without_cuda_graphs_is_told_to_take_its_whole_budget() -> None:
    shared = {"weights": "small", "max_model_len": 8192, "shared_mib": 14720}
    eager = plan_of(SECTIONS, small=shared | {"engine_args": {"enforce_eager": True}})
    placement = eager.roles["sentry"]
    (gpu,) = placement.instance.gpus
    assert 14715 < placement.gpu_memory_utilization * gpu.cuda_mib <= 14720


def test_a_configuration_of_ones_own_is_taken_as_it_is_with_the_digest_added() -> None:
    own = 'backend: "vllm"\ninstance_group [ { kind: KIND_GPU } ]'
    placement = plan_of(SECTIONS, small=CATALOG["small"] | {"config_pbtxt": own}).roles["sentry"]
    text = entry.entry_files(placement)["config.pbtxt"]
    assert f'\n{own}\nparameters {{ key: "berth_digest"' in text
    assert entry.digest(placement) != entry.digest(SMALL)
