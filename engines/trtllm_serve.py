"""`trtllm-serve`: OpenAI's API with errors and metrics of its own (read at 1.1 to 1.3rc)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import httpx

from engines.metrics import Metrics, Samples
from engines.openai_api import OpenAiEngine
from engines.protocol import Patience, Sampling, Stops, Upstream


class TrtllmServe(OpenAiEngine):
    """Its /health says 200 with a dead engine (before 1.2), and it answers to any model's name.

    After a fatal error, /health makes it end itself (1.3rc's openai_server.py): so be it, its unit
    starts it again.
    """

    name = "trtllm-serve"
    carries = frozenset(each.name for each in fields(Sampling))
    stops = Stops.WITHIN_A_SECOND  # openai_server.py polls the client once a second.

    def __init__(
        self, http: httpx.AsyncClient, upstream: Upstream, patience: Patience | None = None
    ) -> None:
        super().__init__(http, upstream, patience)
        self._iteration: dict[str, Any] = {}
        self._done = 0

    async def metrics(self) -> Metrics:
        """Prometheus's where they are switched on (`return_perf_metrics`), else the JSON.

        Reading the JSON takes its entries away from every other reader, so it is only read where
        nothing else is to be had.
        """
        answer = await self._link.get("/prometheus/metrics")
        if answer.is_success:
            try:
                return trtllm_metrics(Samples(answer.text))
            except ValueError:
                pass
        answer = await self._link.get("/metrics")
        try:
            return self._of_iterations(answer.json())
        except (ValueError, TypeError, AttributeError):
            return Metrics()

    def _of_iterations(self, entries: list[dict[str, Any]]) -> Metrics:
        """No entry since the last look: nothing ran, or entries are switched off (or stolen)."""
        for entry in entries:
            self._iteration = entry
            self._done += int(entry.get("numCompletedRequests") or 0)
        last = self._iteration
        if not last:
            return Metrics()
        cache = last.get("kvCacheStats") or {}
        blocks = cache.get("maxNumBlocks")
        return Metrics(
            requests_running=last.get("numActiveRequests") if entries else 0,
            requests_waiting=last.get("numQueuedRequests") if entries else 0,
            requests_done_total=self._done,
            kv_cache_share=cache.get("usedNumBlocks", 0) / blocks if blocks else None,
        )


def trtllm_metrics(samples: Samples) -> Metrics:
    """Two forms: names without a prefix (autumn 2025), `trtllm_` (2026)."""

    def both(name: str) -> tuple[str, str]:
        return f"trtllm_{name}", name

    return Metrics(
        requests_running=samples.number(*both("num_requests_running")),
        requests_waiting=samples.number(*both("num_requests_waiting")),
        requests_done_total=samples.number(*both("request_success_total")),
        prompt_tokens_total=samples.number(*both("prompt_tokens_total")),
        generation_tokens_total=samples.number(*both("generation_tokens_total")),
        kv_cache_share=samples.share(*both("kv_cache_utilization")),
        time_to_first_token=samples.timing(*both("time_to_first_token_seconds")),
        inter_token=samples.timing(*both("time_per_output_token_seconds")),
        queue_time=samples.timing(*both("request_queue_time_seconds")),
        request_time=samples.timing(*both("e2e_request_latency_seconds")),
    )
