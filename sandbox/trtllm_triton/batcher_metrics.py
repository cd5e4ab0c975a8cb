"""The C++ backend's metrics of its inflight batcher, as gauges that each step sets."""

from __future__ import annotations

from typing import Any

import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from sandbox.serving.steps import Generation

TOKENS_PER_BLOCK = 32
_REQUESTS = ("active", "max", "scheduled", "context", "waiting")
_BLOCKS = ("max", "free", "used", "tokens_per", "reused", "fraction")
_FAMILIES = {
    "nv_trt_llm_request_metrics": ("TRT LLM request metrics", "request_type", _REQUESTS),
    "nv_trt_llm_kv_cache_block_metrics": (
        "TRT LLM KV cache block metrics",
        "kv_cache_block_type",
        _BLOCKS,
    ),
    "nv_trt_llm_general_metrics": (
        "General TRT LLM metrics",
        "general_type",
        ("iteration_counter", "timestamp"),
    ),
}


class BatcherMetrics:
    """`kv_tokens` is what the pool holds; `most` how many requests may run."""

    def __init__(self, labels: dict[str, str], kv_tokens: int, most: int) -> None:
        self._blocks, self._most = max(1, kv_tokens // TOKENS_PER_BLOCK), most
        self._iterations = self._tokens = 0
        self._families: list[Any] = []
        self._gauges: dict[tuple[str, str], Any] = {}
        for name, (words, label, values) in _FAMILIES.items():
            kind = pb_utils.MetricFamily.GAUGE
            family = pb_utils.MetricFamily(name=name, description=words, kind=kind)
            self._families.append(family)
            for value in values:
                metric = family.Metric(labels={**labels, label: value})
                self._gauges[name, value] = metric
        self.iterated(0, 0, 0)

    def _set(self, family: str, **values: float) -> None:
        for value, number in values.items():
            self._gauges[family, value].set(number)

    def stepped(self, generation: Generation, tokens: int) -> None:
        fresh = generation.last_token is None
        self._tokens += tokens + (generation.prompt_tokens if fresh else 0)

    def ended(self, generation: Generation) -> None:
        if generation.last_token is not None:
            self._tokens -= generation.prompt_tokens + generation.output_tokens
        # With nothing left to do there is no further step that would say so.
        if self._tokens <= 0:
            self.iterated(0, 0, 0)

    def iterated(self, running: int, waiting: int, tokens: int) -> None:  # noqa: ARG002
        self._iterations += 1
        requests = {"active": running + waiting, "scheduled": running, "waiting": waiting}
        self._set("nv_trt_llm_request_metrics", **requests, max=self._most, context=0)
        used = min(self._blocks, -(-self._tokens // TOKENS_PER_BLOCK))
        blocks = {"max": self._blocks, "used": used, "free": self._blocks - used, "reused": 0}
        blocks |= {"tokens_per": TOKENS_PER_BLOCK}
        share = used / self._blocks
        self._set("nv_trt_llm_kv_cache_block_metrics", **blocks, fraction=share)
        self._set("nv_trt_llm_general_metrics", iteration_counter=self._iterations)
