"""TensorRT-LLM's inflight batcher in Triton, by the ensemble in front of it (read)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from engines.failure import EngineError
from engines.protocol import Completion, End, Event, Request
from engines.triton_native import TritonNative
from models.engine import part_name

UNSAID_MAX_TOKENS = 16
"""OpenAI's own for completions: `max_tokens` is a required input here."""
_STOP = {"stop": True, "input_ids": [0], "input_lengths": 1, "request_output_len": 1}
"""With the id of the request that is to stop; the other inputs are required, and not looked at."""


class TritonBatcher(TritonNative):
    """It compares stop words as tokens, so texts that begin inside a token are found here.

    It names no finish reason. Triton looks for a client that has gone only between an ensemble's
    steps (server#6739), so that the engine would go on to the answer's end. It ends at once by a
    second request to the part that computes, with the first one's id, which an ensemble hands on
    (seen on 2.51), and `stop`.
    """

    name = "triton-batcher"
    carries = frozenset(
        {
            "max_tokens",
            "temperature",
            "top_k",
            "top_p",
            "repetition_penalty",
            "frequency_penalty",
            "presence_penalty",
            "seed",
            "stop",
        }
    )
    says_its_end = False

    @property
    def computes(self) -> str:
        """The ensemble counts requests; tokens and cache are its part's."""
        return part_name(self._upstream.model, "tensorrt_llm")

    async def _complete(self, request: Request) -> Completion:
        request = _named(request)
        try:
            return await super()._complete(request)
        except asyncio.CancelledError:
            await self._stop(request.id)
            raise

    async def _events(self, request: Request) -> AsyncGenerator[Event, None]:
        request, ended = _named(request), False
        try:
            async with aclosing(super()._events(request)) as events:
                async for event in events:
                    # Of a stop text that was found here the engine knows nothing.
                    ended = isinstance(event, End) and not (
                        request.sampling.stop and event.finish_reason == "stop"
                    )
                    yield event
        finally:
            if not ended:
                await self._stop(request.id)

    async def _stop(self, request_id: str) -> None:
        """Nobody waits for what comes of it; an engine that is gone has stopped."""
        path = f"/v2/models/{quote(self.computes, safe='')}/generate_stream"
        with suppress(EngineError, TimeoutError):
            async with (
                asyncio.timeout(self._patience.look_s),
                aclosing(self._link.events(path, _STOP | {"id": request_id}, "")) as events,
            ):
                async for _ in events:
                    pass

    def body(self, request: Request, sampling: dict[str, Any], *, stream: bool) -> dict[str, Any]:
        stop = sampling.pop("stop", None)
        return {
            "text_input": request.prompt,
            "max_tokens": UNSAID_MAX_TOKENS,
            "stream": stream,
            "exclude_input_in_output": True,
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
            **({"stop_words": stop} if stop else {}),
            **sampling,
        }


def _named(request: Request) -> Request:
    """With an id of its own, by which it can be stopped: no other request must have it."""
    return replace(request, id=f"{request.id}-{uuid4().hex[:8]}" if request.id else uuid4().hex)
