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
from engines.protocol import Completion, Request
from engines.triton_native import TritonNative
from models.engine import part_name

UNSAID_MAX_TOKENS = 16
"""OpenAI's own for completions: `max_tokens` is a required input here."""
_STOP = {"stop": True, "input_ids": [0], "input_lengths": 1, "request_output_len": 1}
"""With the id of the request that is to stop; the other inputs are required, and not looked at."""


class TritonBatcher(TritonNative):
    """It compares stop words as tokens, so texts that begin inside a token are found here.

    It names no finish reason. Triton looks for a client that has gone only between an ensemble's
    steps (server#6739), so that the engine would go on to the answer's end; and an ensemble that
    finds its client gone may never let go of the request, which keeps the model from being unloaded
    (seen on 2.51 now and then; core#483 mends another fault of that count). So a request is stopped
    by a second one to the part that computes, with the first one's id, which an ensemble hands on,
    and `stop`; and what it answers is read to its end before the connection closes.
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
        asked = asyncio.ensure_future(super()._complete(request))
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            with suppress(EngineError, TimeoutError):
                async with asyncio.timeout(self._patience.look_s):
                    await self._stop(request.id)
                    await asked
            await _let_go(asked)
            raise

    async def responses(self, request: Request) -> AsyncGenerator[str, None]:
        request, ended = _named(request), False
        responses = super().responses(request)
        coming: asyncio.Future[str | None] | None = None
        try:
            while not ended:
                coming = asyncio.ensure_future(anext(responses, None))
                data = await asyncio.shield(coming)
                ended = data is None
                if data is not None:
                    yield data
        finally:
            if coming is not None and not ended:
                # One that is gone has stopped; for one that does not listen nobody waits long.
                with suppress(EngineError, TimeoutError):
                    async with asyncio.timeout(self._patience.look_s):
                        await self._stop(request.id)
                        while await coming is not None:
                            coming = asyncio.ensure_future(anext(responses, None))
                await _let_go(coming)
            await responses.aclose()

    async def _stop(self, request_id: str) -> None:
        path = f"/v2/models/{quote(self.computes, safe='')}/generate_stream"
        asked = _STOP | {"id": request_id}
        async with aclosing(self._link.events(path, asked, "")) as nothing:
            async for _ in nothing:
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


async def _let_go(reading: asyncio.Future[Any]) -> None:
    """Whatever it is at; returns once its connection is closed."""
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


def _named(request: Request) -> Request:
    """With an id of its own, by which it can be stopped: no other request must have it."""
    return replace(request, id=f"{request.id}-{uuid4().hex[:8]}" if request.id else uuid4().hex)
