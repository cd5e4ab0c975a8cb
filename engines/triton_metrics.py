"""Triton's metrics (port 8002, or /metrics of its OpenAI frontend) as Berth's."""

from __future__ import annotations

from dataclasses import replace

from engines.metrics import Metrics, Samples, Timing
from engines.vllm_serve import vllm_metrics


def triton_metrics(text: str, model: str, computes: str = "") -> Metrics:
    """One model's. Which names there are depends on the backend, so all are tried.

    Args:
        text: what the metrics' port answers.
        model: by which it is called.
        computes: the part of it that has the engine's own metrics, where that is another.

    vLLM's backend has vLLM's counters and no gauges (vllm_backend's `src/utils/metrics.py`), the
    inflight batcher its own (`custom_metrics_reporter`), TensorRT-LLM's LLM-API model none.

    Raises:
        ValueError: it is not Prometheus's text.
    """
    asked = Samples(text, model=model)
    its = Samples(text, model=computes or model)
    found = vllm_metrics(its)
    in_cache = its.share("nv_trt_llm_kv_cache_block_metrics", kv_cache_block_type="fraction")
    prompt = its.timing("nv_llm_input_token_len")
    generated = its.timing("nv_llm_output_token_len")
    waiting = its.number("nv_trt_llm_request_metrics", request_type="waiting")
    return replace(
        found,
        requests_running=its.number("nv_trt_llm_request_metrics", request_type="active"),
        requests_waiting=(
            asked.number("nv_inference_pending_request_count") if waiting is None else waiting
        ),
        requests_done_total=asked.number(
            # The parser gives a counter the `_total` that Triton leaves off.
            "nv_inference_request_success_total",
            "nv_inference_request_success",
        ),
        prompt_tokens_total=_sum(prompt, found.prompt_tokens_total),
        generation_tokens_total=_sum(generated, found.generation_tokens_total),
        kv_cache_share=in_cache,
    )


def _sum(lengths: Timing | None, otherwise: int | None) -> int | None:
    """The sum of a histogram of lengths."""
    return round(lengths.sum_s) if lengths else otherwise
