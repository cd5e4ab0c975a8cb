"""Single rules of the memory plan, and what it says where it knows none."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.memory import Asked, layouts, memory_plan
from models.memory.architecture import architecture
from models.memory.layers import Architecture, Attention, State, Unknown
from models.memory.sharding import stage_weights
from models.memory.stages import stages
from models.weights import Weights
from tests.models.memory import published
from tests.models.memory.published import dense, group

L40S = 45_486
SMALL = dense("llama", 32, 4096, 14_336, 32, 8, 128_256)


def weights_mib(weights: Weights, asked: Asked) -> float:
    model = architecture(weights)
    assert isinstance(model, Architecture), model
    return stage_weights(weights, model, asked).bytes[0] / 2**20


def kv_mib(
    weights: Weights, length: int, tensor: int = 1, release: str = "0.19.0", **arguments: Any
) -> int:
    asked = Asked(length, tensor, engine_args=arguments, vllm=release)
    plan = memory_plan(weights, asked, [L40S] * tensor)
    assert plan.gpus, plan.unknown
    return plan.gpus[0].kv_mib


def test_a_token_of_llama_8b_takes_128_kib() -> None:
    assert kv_mib(SMALL, 8192) == 1024
    assert kv_mib(SMALL, 8192, tensor=2) == 512
    assert kv_mib(SMALL, 8192, kv_cache_dtype="fp8") == 512


def test_more_gpus_than_kv_heads_repeat_keys_and_values() -> None:
    assert kv_mib(SMALL, 8192, tensor=16) == kv_mib(SMALL, 8192, tensor=8) == 128
    eight, sixteen = (weights_mib(SMALL, Asked(1, tensor)) for tensor in (8, 16))
    repeated = 2 * 32 * (8 * 128) * 4096 * 2 / 8 / 2**20
    norms = 33 * 4096 * 2 / 2**20
    assert sixteen == pytest.approx((eight - repeated - norms) / 2 + repeated + norms, abs=0.01)


def test_latent_attention_is_not_divided() -> None:
    whole = kv_mib(published.DEEPSEEK_V2_LITE, 32_768)
    assert whole == kv_mib(published.DEEPSEEK_V2_LITE, 32_768, tensor=4) == 972


def test_a_window_stops_growing_and_costs_more_from_0_26() -> None:
    """Gemma 3 27B at 131,072 tokens takes 11,654 blocks of 1.25 MiB (T 8192, to 0.25)."""
    gemma = published.config_only(
        model_type="gemma3",
        text_config={
            "model_type": "gemma3_text",
            "num_hidden_layers": 62,
            "hidden_size": 5376,
            "num_attention_heads": 32,
            "num_key_value_heads": 16,
            "head_dim": 128,
            "sliding_window": 1024,
        },
    )
    arguments: dict[str, Any] = {"max_num_batched_tokens": 8192}
    assert kv_mib(gemma, 131_072, **arguments) == round(11_654 * 1.25)
    # Two batches are under way: 1089 blocks rather than 577 for each of six groups.
    newer = kv_mib(gemma, 131_072, release="0.26.0", **arguments)
    assert newer == round((8192 + 6 * 1089) * 1.25 + 0.5)
    flat = kv_mib(gemma, 131_072, disable_hybrid_kv_cache_manager=True, **arguments)
    assert flat == 62 * 8192 * 131_072 // 2**20


def test_gpt_oss_alternates_and_takes_3_05_gib_at_131072() -> None:
    found = kv_mib(published.gpt_oss(24, 32), 131_072, max_num_batched_tokens=2048)
    assert found == round((8192 + 137) * 384 / 1024 + 0.5)


def test_a_state_of_nemotron_h_makes_blocks_of_1040_tokens() -> None:
    weights = published.config_only(
        model_type="nemotron_h",
        hybrid_override_pattern="M-M-M*-" * 4,
        hidden_size=4096,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        mamba_num_heads=128,
        mamba_head_dim=64,
        ssm_state_size=128,
        n_groups=8,
        conv_kernel=4,
        mamba_ssm_cache_dtype="float32",
    )
    model = architecture(weights)
    assert isinstance(model, Architecture)
    assert sum(isinstance(layer, Attention) for layer in model.layers) == 4
    assert sum(isinstance(layer, State) for layer in model.layers) == 12
    page = 1040 * 4096
    # Four layers a group: one group of attention, three of states.
    assert kv_mib(weights, 1040, enforce_eager=True) == -(-4 * 4 * page // 2**20)
    assert kv_mib(weights, 1041, enforce_eager=True) == -(-5 * 4 * page // 2**20)


def test_a_hybrid_needs_a_block_for_each_sequence_from_0_20() -> None:
    weights = published.qwen_3_5(40, 16, 2, 32)
    few, many = (
        kv_mib(weights, 4096, release="0.24.0", max_num_seqs=number) for number in (1, 256)
    )
    assert many > 10 * few


def test_a_float32_checkpoint_is_halved_and_fp8_on_load_halves_the_linears() -> None:
    as_stored = weights_mib(SMALL, Asked(1))
    wide = [g.model_copy(update={"dtype": "F32", "bytes": 2 * g.bytes}) for g in SMALL.groups]
    assert weights_mib(SMALL.model_copy(update={"groups": tuple(wide)}), Asked(1)) == as_stored
    vocabulary = 2 * 128_256 * 4096 * 2 / 2**20
    fp8 = weights_mib(SMALL, Asked(1, quantization="fp8"))
    assert fp8 == pytest.approx((as_stored - vocabulary) / 2 + vocabulary, abs=1)


def test_a_tied_lm_head_and_draft_layers_are_not_loaded() -> None:
    groups = (
        *SMALL.groups,
        group("mtp.layers.*.mlp.up_proj.weight", 14_336, 4096, layers=1),
        group("model.layers.*.eh_proj.weight", 4096, 8192).model_copy(
            update={"layers": ((32, 32, 1),)}
        ),
    )
    assert weights_mib(SMALL.model_copy(update={"groups": groups}), Asked(1)) == weights_mib(
        SMALL, Asked(1)
    )
    tied = SMALL.model_copy(update={"config": {**SMALL.config, "tie_word_embeddings": True}})
    head = 128_256 * 4096 * 2 / 2**20
    assert weights_mib(tied, Asked(1)) == pytest.approx(weights_mib(SMALL, Asked(1)) - head)


def test_layers_that_share_kv_have_no_k_and_v() -> None:
    sharing = {**SMALL.config, "num_kv_shared_layers": 8}
    weights = SMALL.model_copy(update={"config": sharing})
    dropped = 8 * 2 * (8 * 128) * 4096 * 2 / 2**20
    assert weights_mib(weights, Asked(1)) == weights_mib(SMALL, Asked(1)) - dropped
    assert kv_mib(weights, 8192) == 1024 * 24 // 32


def test_the_vocabulary_is_padded_to_64_rows() -> None:
    odd = dense("llama", 2, 4096, 64, 32, 8, 50_257)
    even = dense("llama", 2, 4096, 64, 32, 8, 50_304)
    assert weights_mib(odd, Asked(1)) == weights_mib(even, Asked(1))


def test_latent_attention_keeps_a_second_copy_of_its_projection() -> None:
    """27 layers × 512 × 16 heads × (128 + 128) × 2 bytes, divided by tp."""
    copy = 27 * 512 * 16 * 256 * 2 / 2**20
    assert weights_mib(published.DEEPSEEK_V2_LITE, Asked(1)) == copy
    assert weights_mib(published.DEEPSEEK_V2_LITE, Asked(1, 4)) == copy / 4


@pytest.mark.parametrize(
    "update",
    [
        {"quantization": {"kv_cache_quant_algo": "FP8"}},
        {"config": {**SMALL.config, "quantization_config": {"kv_cache_quant_algo": "FP8"}}},
        {
            "config": {
                **SMALL.config,
                "quantization_config": {"kv_cache_scheme": {"num_bits": 8, "type": "float"}},
            }
        },
    ],
)
def test_a_checkpoint_may_say_that_its_kv_cache_is_fp8(update: dict[str, Any]) -> None:
    weights = SMALL.model_copy(update=update)
    assert kv_mib(weights, 8192) == 512
    assert kv_mib(weights, 8192, kv_cache_dtype="bfloat16") == 1024


def test_a_kv_dtype_whose_pages_are_not_known_is_said() -> None:
    asked = Asked(4096, engine_args={"kv_cache_dtype": "int8_per_token_head"})
    plan = memory_plan(SMALL, asked, [L40S])
    assert plan.fits is None
    assert "int8_per_token_head" in plan.unknown


def test_what_no_rule_divides_counts_whole_and_is_named() -> None:
    strange = group("model.layers.*.novel_thing.weight", 4096, 4096, layers=32)
    weights = SMALL.model_copy(update={"groups": (*SMALL.groups, strange)})
    plan = memory_plan(weights, Asked(4096, 2, vllm="0.19.0"), [L40S] * 2)
    assert any("novel_thing" in note for note in plan.notes)
    extra = weights_mib(weights, Asked(1, 2)) - weights_mib(SMALL, Asked(1, 2))
    assert extra == strange.total / 2**20


def test_whole_experts_stand_on_a_gpu_with_expert_parallelism() -> None:
    weights = published.gpt_oss(24, 32)
    divided = weights_mib(weights, Asked(1, 4))
    whole = weights_mib(weights, Asked(1, 4, engine_args={"enable_expert_parallel": True}))
    # 2880 ÷ 4 is padded to 768, 2880 whole to 2944.
    assert whole < divided


def test_layers_left_over_go_to_the_last_but_one_backwards() -> None:
    assert [len(stage) for stage in stages(63, 4)] == [16, 16, 16, 15]
    assert [len(stage) for stage in stages(61, 4)] == [15, 15, 16, 15]
    assert [len(stage) for stage in stages(62, 4)] == [15, 16, 16, 15]


def test_the_default_share_and_the_place_of_graphs_are_the_releases() -> None:
    older, newer = (
        memory_plan(SMALL, Asked(4096, vllm=release), [L40S]).gpus[0]
        for release in ("0.19.1", "0.20.0")
    )
    assert older.budget_mib == L40S * 90 // 100
    assert newer.budget_mib == L40S * 92 // 100
    assert older.needed_mib + older.graphs_mib == newer.needed_mib
    assert older.held_mib == older.budget_mib + older.graphs_mib
    eager = Asked(4096, engine_args={"enforce_eager": True}, vllm="0.20.0")
    assert memory_plan(SMALL, eager, [L40S]).gpus[0].graphs_mib == 0


def test_a_pool_of_fixed_size_ignores_the_share() -> None:
    def asked(length: int, gib: int) -> Asked:
        arguments = {"kv_cache_memory_bytes": gib * 2**30}
        return Asked(length, engine_args=arguments, gpu_memory_utilization=0.1, vllm="0.19.0")

    assert memory_plan(SMALL, asked(8192, 1), [L40S]).fits
    assert memory_plan(SMALL, asked(8193, 1), [L40S]).fits is False
    assert memory_plan(SMALL, asked(8192, 1), [L40S]).largest_max_model_len == 8192
    assert memory_plan(SMALL, asked(8192, 64), [L40S]).fits is False


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"model_type": "novel"}, "`novel`"),
        ({}, "no model_type"),
        ({"model_type": "deepseek_v32"}, "indexer"),
        ({"model_type": "llama", "num_hidden_layers": 2}, "vocab_size|num_attention_heads"),
        ({"model_type": "glm4", "num_hidden_layers": 2, "sliding_window": 9}, "sliding_window"),
    ],
)
def test_an_unknown_architecture_is_said_with_its_name_and_why(
    config: dict[str, Any], word: str
) -> None:
    plan = memory_plan(Weights(config=config), Asked(4096, vllm="0.19.0"), [L40S])
    assert plan.fits is None
    assert plan.largest_max_model_len is None
    assert plan.gpus == ()
    assert re.search(word, plan.unknown)
    assert plan.unknown in plan.shown()


def test_trouble_with_the_files_makes_all_of_it_unknown() -> None:
    broken = SMALL.model_copy(update={"trouble": ("model.safetensors: header is cut off",)})
    plan = memory_plan(broken, Asked(4096), [L40S])
    assert plan.fits is None
    assert "model.safetensors" in plan.unknown


def test_a_split_that_does_not_divide_the_heads_is_no_layout() -> None:
    assert "32 attention heads" in memory_plan(SMALL, Asked(4096, 3), [L40S] * 3).unknown
    assert all(one.tensor_parallel_size != 3 for one in layouts(SMALL, Asked(4096), [L40S] * 3))


def test_the_smallest_gpu_decides() -> None:
    mixed = memory_plan(SMALL, Asked(4096, 2, vllm="0.19"), [L40S, 9000])
    assert mixed.fits is False
    assert mixed.gpus[0].spare_mib > 0 > mixed.gpus[1].spare_mib


def test_an_argument_that_is_not_counted_is_said() -> None:
    arguments = {"enable_lora": True, "speculative_config": {"num_speculative_tokens": 2}}
    notes = memory_plan(SMALL, Asked(4096, engine_args=arguments), [L40S]).notes
    assert any(note.startswith("enable_lora") for note in notes)
    assert any(note.startswith("speculative_config") for note in notes)
    assert any("release is unknown" in note for note in notes)


def test_equal_questions_are_equal_whatever_made_them() -> None:
    again = Weights.model_validate_json(SMALL.model_dump_json())
    assert again == SMALL
    assert hash(again) == hash(SMALL)
    assert Asked(1, engine_args={"a": 1, "b": [2]}) == Asked(1, engine_args={"b": [2], "a": 1})
    assert Asked(1) != Asked(2)


def test_ten_thousand_plans_take_less_than_50_ms() -> None:
    asked = Asked(4096, 2, vllm="0.19.0")
    memory_plan(SMALL, asked, [L40S] * 2)
    took = []
    for _ in range(5):  # the best of them: others use the same cores
        start = time.perf_counter()
        for _ in range(10_000):
            memory_plan(SMALL, asked, [L40S] * 2)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.05


lengths = st.integers(1, 131_072)


@given(lengths, lengths, st.sampled_from([SMALL, published.gpt_oss(24, 32)]))
def test_a_longer_context_never_needs_less(first: int, second: int, weights: Weights) -> None:
    short, long = sorted((first, second))
    plans = [memory_plan(weights, Asked(n, vllm="0.24.0"), [L40S]).gpus[0] for n in (short, long)]
    assert plans[0].needed_mib <= plans[1].needed_mib


@given(lengths, st.sampled_from(["0.17.1", "0.19.0", "0.20.0", "0.26.0", "0.33.0", None]))
def test_what_fits_is_what_the_longest_context_says(length: int, release: str | None) -> None:
    plan = memory_plan(SMALL, Asked(length, vllm=release), [24_000])
    assert plan.largest_max_model_len is not None
    assert plan.fits is (length <= plan.largest_max_model_len)


WORDS = st.sampled_from(["", "fp8", "full_attention", "sliding_attention", "M*-", "true", "7"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
KEYS = sorted({*SMALL.config, "sliding_window", "layer_types", "kv_lora_rank", "text_config"})
TYPES = ["llama", "gemma4_text", "deepseek_v3", "nemotron_h", "qwen3_next", "mistral", "qwen2"]


@given(
    st.dictionaries(st.sampled_from(KEYS), anything),
    st.sampled_from(TYPES),
    st.dictionaries(
        st.sampled_from(["block_size", "max_num_seqs", "kv_cache_dtype", "speculative_config"]),
        anything,
    ),
    st.integers(-1, 4),
)
def test_no_config_and_no_argument_makes_it_throw(
    config: dict[str, Any], model_type: str, arguments: dict[str, Any], tensor: int
) -> None:
    said = {**SMALL.config, "model_type": model_type, **config}
    weights = SMALL.model_copy(update={"config": said})
    plan = memory_plan(weights, Asked(4096, tensor, engine_args=arguments), [L40S] * max(1, tensor))
    assert (plan.fits is None) == bool(plan.unknown)
    assert isinstance(architecture(weights), Architecture | Unknown)
