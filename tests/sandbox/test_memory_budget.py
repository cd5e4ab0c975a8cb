"""The stand-in's memory against the five layouts measured on 4 × L4 (vLLM 0.19)."""

from pathlib import Path
from typing import Any

import pytest

from sandbox.simgpu.devices import simulated_l4
from sandbox.vllm_standin import budget, checkpoint, engine_args
from sandbox.vllm_standin.budget import DoesNotFitError
from sandbox.vllm_standin.checkpoint import Checkpoint
from sandbox.vllm_standin.version import GIB
from sandbox.weights.catalog import STANDARD
from sandbox.weights.directory import write_model

L4 = simulated_l4(0).cuda_total_mib * 2**20


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("weights")
    for model in STANDARD:
        write_model(root, model)
    return root


def _plan(weights: Path, name: str, **options: Any) -> tuple[budget.Budget, Checkpoint]:
    arguments = engine_args.parse({"model": str(weights / name), **options})
    found = checkpoint.read(arguments.model)
    plan = budget.plan(arguments, found, L4)
    if plan.weights + budget.CONTEXT_BYTES > L4:
        raise DoesNotFitError("torch.OutOfMemoryError", "CUDA out of memory.")
    budget.check_kv(arguments, found, plan)
    return plan, found


def test_31b_in_bf16_does_not_fit_on_two(weights: Path) -> None:
    with pytest.raises(DoesNotFitError, match="CUDA out of memory"):
        _plan(weights, "gemma-4-31b-it", tensor_parallel_size=2, max_model_len=4096)


def test_31b_in_nvfp4_does_not_fit_on_one(weights: Path) -> None:
    with pytest.raises(DoesNotFitError, match="CUDA out of memory"):
        _plan(weights, "gemma-4-31b-it-nvfp4", max_model_len=4096)


@pytest.mark.parametrize("utilization", [0.90, 0.92])
def test_31b_in_nvfp4_fits_on_two_and_uses_21_9_gb(utilization: float, weights: Path) -> None:
    options = {"tensor_parallel_size": 2, "gpu_memory_utilization": utilization}
    plan, _ = _plan(weights, "gemma-4-31b-it-nvfp4", max_model_len=4096, **options)
    assert 21.5 < plan.resident / 1e9 < 22.5
    assert plan.resident <= L4


def test_e2b_in_bf16_fits_on_one(weights: Path) -> None:
    plan, _ = _plan(weights, "gemma-4-e2b-it", max_model_len=8192)
    assert plan.kv > 8 * GIB


def test_e4b_in_bf16_fits_on_one(weights: Path) -> None:
    assert _plan(weights, "gemma-4-e4b-it", max_model_len=8192)[0].kv > 2 * GIB


def test_31b_in_nvfp4_fits_in_memory_in_two_stages(weights: Path) -> None:
    """What fails there is the engine, not the memory."""
    options = {"pipeline_parallel_size": 2, "max_model_len": 4096}
    assert _plan(weights, "gemma-4-31b-it-nvfp4", **options)[0].kv > 0


def test_a_context_that_does_not_fit_is_told_with_the_longest_that_does(weights: Path) -> None:
    options = {"tensor_parallel_size": 2, "max_model_len": 262_144}
    with pytest.raises(DoesNotFitError) as caught:
        _plan(weights, "gemma-4-31b-it-nvfp4", **options)
    words = str(caught.value)
    assert "max seq len (262144)" in words
    longest = int(words.split("maximum model length is ")[1].split(".")[0])
    _plan(weights, "gemma-4-31b-it-nvfp4", tensor_parallel_size=2, max_model_len=longest)


def test_a_gpu_that_is_not_free_enough_is_refused_with_both_figures() -> None:
    arguments = engine_args.parse({"gpu_memory_utilization": 0.9})
    with pytest.raises(DoesNotFitError, match=r"cuda:1 \(10\.00/22\.04 GiB\)"):
        budget.check_start(arguments, L4, 10 * GIB, 1)


def test_an_unknown_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_model_length'"):
        engine_args.parse({"max_model_length": 4096})


def test_a_missing_directory_is_told_as_vllm_does(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ensure the presence of a 'config"):
        checkpoint.read(str(tmp_path / "nothing"))
