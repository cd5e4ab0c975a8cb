"""vLLM's metrics under their real names, with the labels `engine` and `model_name`."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sandbox.serving.steps import Generation, Stepper

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0)
_LONG = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 120.0)
_LENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
_GAUGES = {
    "vllm:num_requests_running": "Number of requests in model execution batches.",
    "vllm:num_requests_waiting": "Number of requests waiting to be processed.",
    "vllm:kv_cache_usage_perc": "KV-cache usage. 1 means 100 percent usage.",
}
_COUNTERS = {
    "vllm:prompt_tokens": "Number of prefill tokens processed.",
    "vllm:generation_tokens": "Number of generation tokens processed.",
    "vllm:num_preemptions": "Cumulative number of preemption from the engine.",
    "vllm:prefix_cache_queries": "Prefix cache queries, in terms of number of queried tokens.",
    "vllm:prefix_cache_hits": "Prefix cache hits, in terms of number of cached tokens.",
}
_HISTOGRAMS = {
    "vllm:time_to_first_token_seconds": ("Histogram of time to first token in seconds.", _SECONDS),
    "vllm:inter_token_latency_seconds": ("Histogram of inter-token latency in seconds.", _SECONDS),
    "vllm:e2e_request_latency_seconds": ("Histogram of e2e request latency in seconds.", _LONG),
    "vllm:request_queue_time_seconds": ("Histogram of time spent in WAITING phase.", _LONG),
    "vllm:request_prompt_tokens": ("Number of prefill tokens processed.", _LENGTHS),
    "vllm:request_generation_tokens": ("Number of generation tokens processed.", _LENGTHS),
    "vllm:request_params_n": ("Histogram of the n request parameter.", (1.0, 2.0, 5.0, 10.0, 20.0)),
}
LABELS = ("engine", "model_name")
REASONS = ("stop", "length", "abort", "error", "repetition")


class Metrics:
    """Hears the steps; with `--disable-log-stats` nothing is counted and nothing is shown."""

    def __init__(self, model_name: str, kv_tokens: int, wanted: bool) -> None:
        self._registry = CollectorRegistry()
        self._wanted, self._kv_tokens = wanted, max(1, kv_tokens)
        if not wanted:
            return
        registry = self._registry
        own = {"engine": "0", "model_name": model_name}
        self._gauges = {
            name: Gauge(name, words, LABELS, registry=registry).labels(**own)
            for name, words in _GAUGES.items()
        }
        sleep = Gauge(
            "vllm:engine_sleep_state",
            "Engine sleep state; awake = 0 means engine is sleeping.",
            (*LABELS, "sleep_state"),
            registry=registry,
        )
        for state in ("awake", "weights_offloaded", "discard_all"):
            sleep.labels(**own, sleep_state=state).set(int(state == "awake"))
        self._counters = {
            name: Counter(name, words, LABELS, registry=registry).labels(**own)
            for name, words in _COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(name, words, LABELS, buckets=buckets, registry=registry).labels(**own)
            for name, (words, buckets) in _HISTOGRAMS.items()
        }
        success = Counter(
            "vllm:request_success",
            "Count of successfully processed requests.",
            (*LABELS, "finished_reason"),
            registry=registry,
        )
        self._success = {
            reason: success.labels(**own, finished_reason=reason) for reason in REASONS
        }

    def stepped(self, generation: Generation, tokens: int) -> None:
        if not self._wanted:
            return
        now = time.monotonic()
        self._counters["vllm:generation_tokens"].inc(tokens)
        if generation.last_token is None:
            self._counters["vllm:prompt_tokens"].inc(generation.prompt_tokens)
            self._counters["vllm:prefix_cache_queries"].inc(generation.prompt_tokens)
            waited = (generation.scheduled or now) - generation.arrived
            self._histograms["vllm:request_queue_time_seconds"].observe(waited)
            name = "vllm:time_to_first_token_seconds"
            self._histograms[name].observe(now - generation.arrived)
        else:
            name = "vllm:inter_token_latency_seconds"
            self._histograms[name].observe(now - generation.last_token)

    def ended(self, generation: Generation) -> None:
        if not self._wanted:
            return
        if generation.failure is not None:
            self._success["error"].inc()
            return
        if generation.aborted:
            self._success["abort"].inc()
            return
        for output in generation.outputs:
            self._success[str(output.finish_reason)].inc()
        seconds = time.monotonic() - generation.arrived
        self._histograms["vllm:e2e_request_latency_seconds"].observe(seconds)
        self._histograms["vllm:request_prompt_tokens"].observe(generation.prompt_tokens)
        self._histograms["vllm:request_generation_tokens"].observe(generation.output_tokens)
        self._histograms["vllm:request_params_n"].observe(len(generation.outputs))

    def iterated(self, running: int, waiting: int, tokens: int) -> None:
        """Gauges are read at a scrape, not at each step."""

    def text(self, stepper: Stepper) -> bytes:
        """What a scrape reads now."""
        if self._wanted:
            held = sum(g.prompt_tokens + g.output_tokens for g in stepper.running)
            self._gauges["vllm:num_requests_running"].set(len(stepper.running))
            self._gauges["vllm:num_requests_waiting"].set(len(stepper.waiting))
            self._gauges["vllm:kv_cache_usage_perc"].set(min(1.0, held / self._kv_tokens))
        return generate_latest(self._registry)
