"""What of a catalog entry means nothing, or two things, to TensorRT-LLM's engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from models.catalog import CatalogModel
from models.engine import BATCHER_ENTRY, TRAITS, Engine
from models.finding import UNTOUCHED
from models.refusal import Refusal

SAID_BESIDE = {
    "max_seq_len": "max_model_len",
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "model_path": "weights",
}
"""Names of TensorRT-LLM for what the catalog says itself."""
BATCHER_PARAMETERS = frozenset(
    {
        "max_beam_width", "max_tokens_in_paged_kv_cache", "max_attention_window_size",
        "sink_token_length", "batch_scheduler_policy", "cross_kv_cache_fraction",
        "kv_cache_host_memory_bytes", "cancellation_check_period_ms", "stats_check_period_ms",
        "recv_poll_period_ms", "iter_stats_max_iterations", "request_stats_max_iterations",
        "enable_kv_cache_reuse", "normalize_log_probs", "enable_chunked_context",
        "gpu_device_ids", "participant_ids", "num_nodes", "gpu_weights_percent",
        "lora_cache_optimal_adapter_size", "lora_cache_max_adapter_size",
        "lora_cache_gpu_memory_fraction", "lora_cache_host_memory_bytes", "lora_prefetch_dir",
        "decoding_mode", "medusa_choices", "eagle_choices", "lookahead_window_size",
        "lookahead_ngram_size", "lookahead_verification_set_size", "multi_block_mode",
        "enable_context_fmha_fp32_acc", "cuda_graph_mode", "cuda_graph_cache_size",
        "guided_decoding_backend", "xgrammar_tokenizer_info_path", "tokenizer_dir",
        "speculative_decoding_fast_logits",
    }
)  # fmt: skip
"""Parameters of `inflight_batcher_llm/tensorrt_llm` (tensorrtllm_backend, docs/model_config.md),
without those that Berth fills in. Triton takes any name, and says nothing of one that nobody reads.
"""
ORCHESTRATOR = "TRTLLM_ORCHESTRATOR"
"""Variable that lets the batcher start a worker for each GPU; without it Triton itself would have
to be started by mpirun (tensorrtllm_backend, docs/llama_multi_instance.md)."""


def trtllm_refusals(
    name: str, model: CatalogModel, engine: Engine, environment: Mapping[str, str], instance: str
) -> Iterator[Refusal]:
    """What is wrong with a catalog entry under one of TensorRT-LLM's engines; nothing for others.

    Args:
        name: the entry's.
        model: the entry.
        engine: what a role serves it by.
        environment: the variables of its instance.
        instance: the instance's name.
    """
    if TRAITS[engine].runs != "trtllm":
        return
    at = f"catalog/{name}.yaml"
    for key in sorted(model.trtllm_args.keys() & SAID_BESIDE.keys()):
        yield Refusal(
            f"`{key}` is not for `trtllm_args`",
            consequence=f"It would contradict what Berth renders itself. {UNTOUCHED}",
            fix=f"set `{SAID_BESIDE[key]}` beside it.",
            at=f"{at}: trtllm_args.{key}",
        )
    if engine in BATCHER_ENTRY:
        yield from _batcher(model, engine, environment, instance, at)
        return
    yield from _kv_cache(model, at)
    if engine == "triton-llmapi" and "triton_config" in model.trtllm_args:
        yield Refusal(
            "`triton_config` is not for `trtllm_args`",
            consequence=f"Without `decoupled` it could not stream. {UNTOUCHED}",
            fix="leave it out: Berth renders it.",
            at=f"{at}: trtllm_args.triton_config",
        )


def _kv_cache(model: CatalogModel, at: str) -> Iterator[Refusal]:
    told = model.trtllm_args.get("kv_cache_config", {})
    if not isinstance(told, dict):
        yield Refusal(
            "`kv_cache_config` is a map, such as {dtype: fp8}",
            consequence=f"The engine would not start. {UNTOUCHED}",
            fix="write its keys below it.",
            at=f"{at}: trtllm_args.kv_cache_config",
        )
    elif "free_gpu_memory_fraction" in told:
        yield Refusal(
            "`free_gpu_memory_fraction` is not for `trtllm_args`",
            consequence=f"It would contradict what Berth renders itself. {UNTOUCHED}",
            fix="set `gpu_memory_utilization` beside it: for this engine it means just that.",
            at=f"{at}: trtllm_args.kv_cache_config.free_gpu_memory_fraction",
        )


def _batcher(
    model: CatalogModel, engine: Engine, environment: Mapping[str, str], instance: str, at: str
) -> Iterator[Refusal]:
    own = TRAITS[engine].for_life
    if model.engine_dir is None:
        yield Refusal(
            f"`{engine}` serves prebuilt engines, and nothing says where they are",
            consequence=UNTOUCHED,
            fix="build them with `trtllm-build` in an image of the same release and set "
            f"`engine_dir`, or take `{'trtllm-serve' if own else 'triton-llmapi'}`, which needs "
            "none.",
            at=f"{at}: engine_dir",
        )
    if model.config_pbtxt is not None:
        yield Refusal(
            f"`{engine}` has four configurations, and `config_pbtxt` is one",
            consequence=f"It would be for none of them. {UNTOUCHED}",
            fix="leave it out, and set parameters of `tensorrt_llm` by `trtllm_args`.",
            at=f"{at}: config_pbtxt",
        )
    for key in sorted(model.trtllm_args.keys() - BATCHER_PARAMETERS - SAID_BESIDE.keys()):
        yield Refusal(
            f"`{key}` is no parameter of TensorRT-LLM's batcher that a catalog entry may set",
            consequence=f"Nobody would read it. {UNTOUCHED}",
            fix=f"leave it out; there are {', '.join(sorted(BATCHER_PARAMETERS))}.",
            at=f"{at}: trtllm_args.{key}",
        )
    # A server of its own is told so by Berth, unless its instance says otherwise.
    if model.width > 1 and environment.get(ORCHESTRATOR, "1" if own else "") != "1":
        yield Refusal(
            f"on {model.width} GPUs the batcher starts a worker for each only if told to",
            consequence=f"The load would fail: Triton is not started by mpirun. {UNTOUCHED}",
            fix=f'set `environment: {{{ORCHESTRATOR}: "1"}}` of the instance.',
            at=f"berth:instances.{instance}.environment",
        )
