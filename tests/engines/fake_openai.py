"""vllm serve, trtllm-serve and Triton's OpenAI frontend as facts say they answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

VLLM = "vllm"
TRTLLM = "trtllm-serve"
FRONTEND = "triton-openai"
FRONTEND_BATCHER = "triton-openai-batcher"


@dataclass
class FakeOpenAi:
    """An engine of `kind` that says `tokens`, and fails as it is told to."""

    kind: str
    tokens: list[str] = field(default_factory=lambda: ["Hello", ",", " wörld", "!"])
    models: list[str] = field(default_factory=lambda: ["m"])
    finish: str = "stop"
    endless: bool = False
    break_after: int | None = None
    """Events after which the connection ends without [DONE]."""
    fail_after: int | None = None
    """Events after which an error event comes, then [DONE] (vLLM)."""
    refuse: tuple[int, Any] | None = None
    health: int = 200
    metrics: str = ""
    iterations: list[dict[str, Any]] | None = None
    prometheus: str | None = None
    seen: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    hang_after: int | None = None
    """Events after which nothing more comes, and every other request fails."""
    slow_s: float = 0.0
    """Seconds a token, and a whole answer."""
    stall: bool = False
    """A whole answer never comes."""
    dies: bool = False
    """The first whole answer never comes, and every later request fails."""
    running: int = 0
    answering: int = 0
    most_answering: int = 0
    """Whole answers that were made at the same time."""

    async def _slowly(self) -> None:
        self.answering += 1
        self.most_answering = max(self.most_answering, self.answering)
        await asyncio.sleep(self.slow_s)
        self.answering -= 1

    async def _stalled(self, request: Request) -> None:
        """Wait, as an engine generates, until the client goes."""
        if self.dies:
            self.refuse = (400, {"error": "Stub process 'm_0_0' is not healthy."})
        self.running += 1
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.running -= 1

    @property
    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/completions", self._complete, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/health", self._health),
                Route("/health/ready", self._health),
                Route("/version", self._version),
                Route("/metrics", self._metrics),
                Route("/prometheus/metrics", self._prometheus),
            ]
        )

    async def _models(self, _: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": name} for name in self.models]})

    async def _health(self, _: Request) -> Response:
        return Response(status_code=self.health)

    async def _version(self, _: Request) -> Response:
        return JSONResponse({"version": "1.2.3"})

    async def _metrics(self, _: Request) -> Response:
        if self.iterations is not None:
            entries, self.iterations = self.iterations, []
            return JSONResponse(entries)
        return PlainTextResponse(self.metrics)

    async def _prometheus(self, _: Request) -> Response:
        if self.prometheus is None:
            return JSONResponse({"detail": "Not Found"}, 404)
        return PlainTextResponse(self.prometheus)

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        self.seen.append(body)
        self.headers.append(dict(request.headers))
        if self.refuse:
            return JSONResponse(self.refuse[1], self.refuse[0])
        chat = "messages" in body
        if body.get("stream"):
            events = self._events(body, chat)
            return StreamingResponse(events, media_type="text/event-stream")
        if self.stall or self.dies:
            await self._stalled(request)
        await self._slowly()
        text = "".join(self.tokens)
        choice: dict[str, Any] = {"index": 0, "finish_reason": self.finish}
        choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        # Several served names: the first one, whichever was asked for (vLLM).
        usage = {"prompt_tokens": 3, "completion_tokens": len(self.tokens), "total_tokens": 9}
        return JSONResponse({"model": self.models[0], "choices": [choice], "usage": usage})

    async def _events(self, body: dict[str, Any], chat: bool) -> AsyncIterator[str]:
        self.running += 1
        try:
            async for chunk in self._chunks(body, chat):
                yield chunk
        finally:
            self.running -= 1

    async def _chunks(self, body: dict[str, Any], chat: bool) -> AsyncIterator[str]:
        if chat:
            tail = " \n\n" if self.kind == TRTLLM else "\n\n"
            yield _event({"delta": {"role": "assistant", "content": ""}}, self.models[0], tail)
        sent = 0
        while True:
            for token in self.tokens:
                if sent == self.hang_after:
                    self.refuse = (400, {"error": "Stub process 'm_0_0' is not healthy."})
                    await asyncio.Event().wait()
                if sent == self.break_after:
                    raise ConnectionAbortedError
                if sent == self.fail_after:
                    error = {"message": "EngineCore died", "type": "InternalServerError"}
                    yield f"data: {json.dumps({'error': error | {'code': 500}})}\n\n"
                    yield "data: [DONE]\n\n"
                    return
                yield _event({"delta": {"content": token}} if chat else {"text": token}, "x")
                sent += 1
                await asyncio.sleep(self.slow_s or (0.005 if self.endless else 0))
            if not self.endless:
                break
        end: dict[str, Any] = {"delta": {}} if chat else {"text": ""}
        yield _event(end | {"finish_reason": self.finish}, self.models[0])
        # trtllm-serve counts as soon as stream_options are there, whatever they say.
        options = body.get("stream_options")
        if options and (self.kind == TRTLLM or options.get("include_usage")):
            usage = {"prompt_tokens": 3, "completion_tokens": sent, "total_tokens": 3 + sent}
            yield f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n"
        yield "data: [DONE]\n\n"


def _event(choice: dict[str, Any], model: str, tail: str = "\n\n") -> str:
    chunk = {"model": model, "choices": [{"index": 0, "finish_reason": None} | choice]}
    return f"data: {json.dumps(chunk)}{tail}"
