"""The rows measured on 4 × L4 without NVLink, vLLM 0.19 (docs/memory.md)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from models.memory import Asked, cuda_mib, layouts, memory_plan
from models.weights import Weights
from tests.models.conftest import L4_MIB

Checkpoint = Callable[[str], Weights]


@pytest.mark.parametrize("l4", [L4_MIB, 22_528])
@pytest.mark.parametrize(
    ("name", "tensor", "pipeline", "length", "fits"),
    [
        ("gemma-4-31b-it", 2, 1, 4096, False),
        ("gemma-4-31b-it-nvfp4", 1, 1, 4096, False),
        ("gemma-4-31b-it-nvfp4", 2, 1, 4096, True),
        ("gemma-4-e2b-it", 1, 1, 8192, True),
        # What fails there is the engine, not the memory.
        ("gemma-4-31b-it-nvfp4", 1, 2, 4096, True),
    ],
)
def test_a_measured_row_comes_out_as_measured(
    checkpoint: Checkpoint, name: str, tensor: int, pipeline: int, length: int, fits: bool, l4: int
) -> None:
    asked = Asked(length, tensor, pipeline, vllm="0.19.0")
    plan = memory_plan(checkpoint(name), asked, [l4] * asked.width)
    assert plan.fits is fits, plan.shown()
    assert not plan.unknown


def test_two_l4s_show_21_9_gb_used_with_the_31b_in_nvfp4(checkpoint: Checkpoint) -> None:
    plan = memory_plan(
        checkpoint("gemma-4-31b-it-nvfp4"), Asked(4096, 2, vllm="0.19"), [L4_MIB] * 2
    )
    assert [gpu.held_mib * 2**20 / 1e9 for gpu in plan.gpus] == pytest.approx([21.9] * 2, abs=0.1)


def test_what_does_not_fit_could_not_even_hold_its_weights(checkpoint: Checkpoint) -> None:
    """Both ended in CUDA out of memory while loading, not for want of a KV cache."""
    for name, tensor in (("gemma-4-31b-it", 2), ("gemma-4-31b-it-nvfp4", 1)):
        plan = memory_plan(checkpoint(name), Asked(4096, tensor, vllm="0.19.0"), [L4_MIB] * tensor)
        assert all(gpu.weights_mib > gpu.cuda_mib for gpu in plan.gpus)
        assert plan.largest_max_model_len == 0


def test_the_bf16_31b_is_told_where_it_fits(checkpoint: Checkpoint) -> None:
    found = layouts(checkpoint("gemma-4-31b-it"), Asked(4096, 2, vllm="0.19.0"), [L4_MIB] * 4)
    assert [(one.tensor_parallel_size, one.pipeline_parallel_size) for one in found] == [
        (4, 1),
        (2, 2),
        (1, 4),
    ]


def test_the_longest_context_fits_and_one_token_more_does_not(checkpoint: Checkpoint) -> None:
    weights = checkpoint("gemma-4-31b-it-nvfp4")
    longest = memory_plan(weights, Asked(4096, 2, vllm="0.19"), [L4_MIB] * 2).largest_max_model_len
    assert longest is not None
    for length, fits in ((longest, True), (longest + 1, False)):
        asked = Asked(length, 2, vllm="0.19")
        assert memory_plan(weights, asked, [L4_MIB] * 2).fits is fits


def test_an_l4_has_less_memory_in_cuda_than_in_nvidia_smi() -> None:
    assert cuda_mib(23_034) == cuda_mib(23_034, reserved_mib=469) == L4_MIB


def test_the_first_stage_holds_the_towers_and_both_ends_the_tied_embedding(
    checkpoint: Checkpoint,
) -> None:
    weights = checkpoint("gemma-4-31b-it-nvfp4")
    plan = memory_plan(weights, Asked(4096, 1, 2, vllm="0.19.0"), [L4_MIB] * 2)
    first, last = (gpu.weights_mib for gpu in plan.gpus)
    embedding = 262_144 * 5376 * 2 // 2**20
    assert first > last
    assert first + last > weights.total // 2**20 + embedding


def test_every_term_is_shown(checkpoint: Checkpoint) -> None:
    plan = memory_plan(
        checkpoint("gemma-4-31b-it-nvfp4"), Asked(4096, 2, vllm="0.19"), [L4_MIB] * 2
    )
    gpu = plan.gpus[0]
    for term in (gpu.weights_mib, gpu.kv_mib, gpu.overhead_mib, gpu.graphs_mib, gpu.budget_mib):
        assert str(term) in plan.shown()
    assert "\n" not in plan.shown()


def test_an_entry_is_understood_and_never_needs_a_guess(checkpoint: Checkpoint) -> None:
    for name in ("gemma-4-e4b-it", "gemma-4-26b-a4b-it", "llama-3.2-1b-instruct"):
        plan = memory_plan(checkpoint(name), Asked(4096, 4, vllm="0.19"), [L4_MIB] * 4)
        assert plan.fits, (name, plan.shown())
        assert not any("no rule" in note for note in plan.notes), plan.notes
