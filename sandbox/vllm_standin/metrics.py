"""Custom metrics under NVIDIA's names, where REPORT_CUSTOM_METRICS asks for them."""

from __future__ import annotations

from typing import Any

import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

_COUNTERS = {
    "vllm:prompt_tokens_total": "Number of prefill tokens processed.",
    "vllm:generation_tokens_total": "Number of generation tokens processed.",
}
_SECONDS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0]
_LENGTHS = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]
_HISTOGRAMS = {
    "vllm:time_to_first_token_seconds": ("Time to first token in seconds.", _SECONDS),
    "vllm:time_per_output_token_seconds": ("Time per output token in seconds.", _SECONDS),
    "vllm:e2e_request_latency_seconds": ("End to end request latency in seconds.", _SECONDS),
    "vllm:request_prompt_tokens": ("Number of prefill tokens processed.", _LENGTHS),
    "vllm:request_generation_tokens": ("Number of generation tokens processed.", _LENGTHS),
    "vllm:request_params_n": ("The n request parameter.", [1.0, 2.0, 5.0, 10.0, 20.0]),
}


class Metrics:
    """Counters and, where this Triton's Python backend has them, histograms."""

    def __init__(self, labels: dict[str, str] | None) -> None:
        self._families: list[Any] = []
        self._metrics: dict[str, Any] = {}
        if labels is None:
            return
        family = pb_utils.MetricFamily
        for name, words in _COUNTERS.items():
            self._add(labels, {}, name=name, description=words, kind=family.COUNTER)
        if hasattr(family, "HISTOGRAM"):
            for name, (words, buckets) in _HISTOGRAMS.items():
                extra = {"buckets": buckets}
                self._add(labels, extra, name=name, description=words, kind=family.HISTOGRAM)

    def _add(self, labels: dict[str, str], extra: dict[str, Any], **family: Any) -> None:
        made = pb_utils.MetricFamily(**family)
        self._families.append(made)
        self._metrics[family["name"]] = made.Metric(labels=labels, **extra)

    def count(self, name: str, amount: int) -> None:
        if amount and name in self._metrics:
            self._metrics[name].increment(amount)

    def observe(self, name: str, value: float) -> None:
        if name in self._metrics:
            self._metrics[name].observe(value)
