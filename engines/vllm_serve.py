"""`vllm serve`: OpenAI's API, Prometheus's metrics (observed on 0.32.0)."""

from __future__ import annotations

from dataclasses import fields

from engines.failure import broken
from engines.metrics import Metrics, Samples
from engines.openai_api import OpenAiEngine
from engines.protocol import Sampling


class VllmServe(OpenAiEngine):
    """A model may have several served names: answers and metrics carry the first, so neither is
    looked at for the model's name. It serves one model, so all its metrics are that model's."""

    name = "vllm"
    carries = frozenset(each.name for each in fields(Sampling))

    async def metrics(self) -> Metrics:
        answer = await self._link.get("/metrics")
        try:
            if not answer.is_success:
                raise ValueError
            return vllm_metrics(Samples(answer.text))
        except ValueError:
            raise broken(f"/metrics answers {answer.status_code} and no metrics") from None


def vllm_metrics(samples: Samples) -> Metrics:
    """Names as vLLM 0.32.0 has them; `inter_token` had another name before."""
    return Metrics(
        requests_running=samples.number("vllm:num_requests_running"),
        requests_waiting=samples.number("vllm:num_requests_waiting"),
        requests_done_total=samples.number("vllm:request_success_total"),
        prompt_tokens_total=samples.number("vllm:prompt_tokens_total"),
        generation_tokens_total=samples.number("vllm:generation_tokens_total"),
        kv_cache_share=samples.share("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        time_to_first_token=samples.timing("vllm:time_to_first_token_seconds"),
        inter_token=samples.timing(
            "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"
        ),
        queue_time=samples.timing("vllm:request_queue_time_seconds"),
        request_time=samples.timing("vllm:e2e_request_latency_seconds"),
    )
