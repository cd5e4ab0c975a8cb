"""The two kinds of metrics: statistics of iterations that drain, and Prometheus on demand."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sandbox.serving.steps import Generation
from sandbox.vllm_standin.engine import Engine

MOST_ITERATIONS = 1000
TOKENS_PER_BLOCK = 32
_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_HISTOGRAMS = (
    *("e2e_request_latency_seconds", "time_to_first_token_seconds"),
    *("time_per_output_token_seconds", "request_queue_time_seconds"),
)
_GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_utilization")
_COUNTERS = ("prompt_tokens", "generation_tokens", "request_error")


class Statistics:
    """Hears the steps.

    `TRTLLM_STANDIN_METRICS=2025` gives Prometheus' names without the prefix `trtllm_` and with
    labels that say `undefined`, as in autumn 2025; which form 1.2.1 has is not known.
    """

    def __init__(self, name: str, engine: Engine, iterations: bool, prometheus: bool) -> None:
        self._engine, self._wanted = engine, iterations
        self._rows: deque[dict[str, Any]] = deque(maxlen=MOST_ITERATIONS)
        self._iteration = self._completed = self._held_tokens = 0
        self._last = time.monotonic()
        self._prometheus = Prometheus(name) if prometheus else None

    def stepped(self, generation: Generation, tokens: int) -> None:
        fresh = generation.last_token is None
        self._held_tokens += tokens + (generation.prompt_tokens if fresh else 0)
        if self._prometheus:
            self._prometheus.stepped(generation, tokens)

    def ended(self, generation: Generation) -> None:
        if generation.last_token is not None:
            self._held_tokens -= generation.prompt_tokens + generation.output_tokens
        self._completed += 1
        if self._prometheus:
            self._prometheus.ended(generation)

    def iterated(self, running: int, waiting: int, tokens: int) -> None:
        self._iteration += 1
        now = time.monotonic()
        latency, self._last = (now - self._last) * 1000, now
        if self._wanted:
            self._rows.append(self._row(latency, running, waiting, tokens))
        self._completed = 0

    @property
    def _pool_tokens(self) -> int:
        return max(1, self._engine.kv_tokens)

    def _row(self, latency: float, running: int, waiting: int, tokens: int) -> dict[str, Any]:
        most = self._pool_tokens // TOKENS_PER_BLOCK
        used = min(most, -(-self._held_tokens // TOKENS_PER_BLOCK))
        blocks: dict[str, Any] = {
            "allocNewBlocks": 0,
            "allocTotalBlocks": used,
            "cacheHitRate": 0.0,
        }
        blocks |= {"freeNumBlocks": most - used, "maxNumBlocks": most, "missedBlocks": 0}
        blocks |= {"reusedBlocks": 0, "tokensPerBlock": TOKENS_PER_BLOCK, "usedNumBlocks": used}
        batching: dict[str, Any] = {"numScheduledRequests": running, "numContextRequests": 0}
        batching |= {"numGenRequests": running, "numPausedRequests": 0, "numCtxTokens": 0}
        batching |= {"microBatchId": 0, "avgNumDecodedTokensPerIter": tokens / max(1, running)}
        return {
            "iter": self._iteration,
            "timestamp": time.strftime("%m-%d-%Y %H:%M:%S.000000"),
            "iterLatencyMS": latency,
            "numActiveRequests": running,
            "numQueuedRequests": waiting,
            "numCompletedRequests": self._completed,
            "maxNumActiveRequests": 2048,
            "gpuMemUsage": sum(worker.held for worker in self._engine.workers),
            "cpuMemUsage": 0,
            "pinnedMemUsage": 0,
            "kvCacheStats": blocks,
            "inflightBatchingStats": batching,
            "specDecodingStats": None,
        }

    def drain(self) -> list[dict[str, Any]]:
        """All iterations since the last reading: whoever reads next gets none of them."""
        rows = list(self._rows)
        self._rows.clear()
        return rows

    def text(self, running: int, waiting: int) -> bytes | None:
        """Prometheus' text, where the YAML asks for it."""
        if self._prometheus is None:
            return None
        return self._prometheus.text(running, waiting, self._held_tokens / self._pool_tokens)


class Prometheus:
    """`/prometheus/metrics`."""

    def __init__(self, name: str) -> None:
        self._registry = CollectorRegistry()
        old = os.environ.get("TRTLLM_STANDIN_METRICS") == "2025"
        prefix = "" if old else "trtllm_"
        model, kind = ("undefined", "undefined") if old else (name, "pytorch")
        labels, own = ("model_name", "engine_type"), {"model_name": model, "engine_type": kind}
        registry = self._registry
        self._times = {
            metric: Histogram(prefix + metric, metric, labels, buckets=_SECONDS, registry=registry)
            for metric in _HISTOGRAMS
        }
        self._success = Counter(
            f"{prefix}request_success",
            "Count of successfully processed requests.",
            (*labels, "finished_reason"),
            registry=registry,
        )
        newer = not old
        self._gauges = {m: Gauge(prefix + m, m, labels, registry=registry) for m in _GAUGES * newer}
        self._counters = {
            metric: Counter(prefix + metric, metric, labels, registry=registry)
            for metric in _COUNTERS * newer
        }
        self._own = own

    def stepped(self, generation: Generation, tokens: int) -> None:
        fresh = generation.last_token is None
        if self._counters:
            self._counters["generation_tokens"].labels(**self._own).inc(tokens)
            if fresh:
                counted = self._counters["prompt_tokens"].labels(**self._own)
                counted.inc(generation.prompt_tokens)
        if fresh:
            now = time.monotonic()
            waited = (generation.scheduled or now) - generation.arrived
            self._observe("request_queue_time_seconds", waited)
            self._observe("time_to_first_token_seconds", now - generation.arrived)

    def _observe(self, name: str, seconds: float) -> None:
        self._times[name].labels(**self._own).observe(seconds)

    def ended(self, generation: Generation) -> None:
        if generation.failure is not None or generation.aborted:
            if self._counters:
                self._counters["request_error"].labels(**self._own).inc()
            return
        for output in generation.outputs:
            self._success.labels(**self._own, finished_reason=output.finish_reason).inc()
        seconds = time.monotonic() - generation.arrived
        self._observe("e2e_request_latency_seconds", seconds)
        self._observe("time_per_output_token_seconds", seconds / generation.output_tokens)

    def text(self, running: int, waiting: int, share: float) -> bytes:
        """Gauges are as they are now."""
        for gauge, value in zip(self._gauges.values(), (running, waiting, share), strict=False):
            gauge.labels(**self._own).set(value)
        return generate_latest(self._registry)
