"""Triton's OpenAI frontend (`python/openai`, read at 26.09 dev): strict, and frugal with truth."""

from __future__ import annotations

from engines.failure import broken
from engines.metrics import Metrics
from engines.openai_api import OpenAiEngine
from engines.protocol import Request, Stops, Usage, Version
from engines.triton_metrics import triton_metrics


class TritonOpenai(OpenAiEngine):
    """It lists models from a table of its own, so that a dead one stays listed: `ready` asks it.

    Where `--tokenizer` is missing every chat ends in 500 `Unknown tokenizer`. max_tokens is 16
    where a request has none.
    """

    name = "triton-openai"
    health_path = "/health/ready"  # 200 or 400; there is no /health/live.
    # Unknown fields are forbidden (422), and OpenAI has no top_k, min_p or repetition_penalty.
    carries = frozenset(
        {
            "max_tokens",
            "temperature",
            "top_p",
            "seed",
            "presence_penalty",
            "frequency_penalty",
            "stop",
        }
    )
    stops = Stops.RUNS_ON  # Nothing in the frontend looks whether the client is still there.

    @property
    def computes(self) -> str:
        """The part of the model that has the engine's own metrics, where that is another."""
        return ""

    def finish_reason(self, said: str | None, usage: Usage, request: Request) -> str:
        """It says `stop` also of an answer that max_tokens cut, so the count decides.

        An answer that ends by itself on its very last token is told as cut, the lesser wrong.
        """
        most = request.sampling.max_tokens
        made = usage.completion_tokens
        if said == "stop" and most is not None and made is not None and made >= most:
            return "length"
        return super().finish_reason(said, usage, request)

    async def version(self) -> Version:
        """It has no path that says so."""
        return Version(self.name, None)

    async def metrics(self) -> Metrics:
        answer = await self._link.get("/metrics")
        try:
            if not answer.is_success:
                raise ValueError
            return triton_metrics(answer.text, self._upstream.model, self.computes)
        except ValueError:
            raise broken(f"/metrics answers {answer.status_code} and no metrics") from None
