"""trtllm-serve's paths. It has no key, and compares no model name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from sandbox.serving.steps import EngineDeadError, Generation, Stepper, Visible
from sandbox.trtllm_standin.loading import DEAD
from sandbox.vllm_standin import answers
from sandbox.vllm_standin.engine import Engine

from . import VERSION, question, shapes
from .errors import RefusedError
from .question import Question
from .settings import Settings
from .statistics import Statistics

POLL_SECONDS = 1.0
"""How often it looks whether a client is still there: generation runs on for so long."""
UNAVAILABLE = "LLM is unavailable. Please check the server logs for more details."
Ask = Callable[[bytes, Settings, int], Question]


@dataclass
class Server:
    """The paths' handlers around one engine."""

    settings: Settings
    engine: Engine
    log: Callable[[str], None]
    http: uvicorn.Server | None = None

    def __post_init__(self) -> None:
        iterations, prometheus = self.settings.iteration_stats, self.settings.perf_metrics
        self.statistics = Statistics(self.settings.name, self.engine, iterations, prometheus)
        self.stepper = Stepper(self.engine, self.settings.max_batch_size, self.statistics, DEAD)
        self._watched: set[asyncio.Task[None]] = set()

    async def beside(self, http: uvicorn.Server) -> None:
        """Step; a dead executor is noticed where it is used."""
        self.http = http
        await self.stepper.run()

    def _interrupt(self) -> None:
        """What the real one does to itself after a fatal error, by SIGINT."""
        if self.http is not None:
            self.http.should_exit = True

    def _begin(self, asked: Question) -> Generation:
        name, prompt, wanted = self.engine.checkpoint.name, asked.prompt, asked.sampling
        outputs = [answers.begin(name, prompt, wanted, index) for index in range(wanted.n)]
        length = answers.tokens_of(prompt)
        generation = Generation(outputs, wanted, length, self.engine.max_model_len - length)
        self.stepper.submit(generation)
        return generation

    def _watch(self, request: Request, generation: Generation) -> None:
        """Abort it once the client has gone, which is looked at once a second."""

        async def watch() -> None:
            while not (generation.finished or generation.failure):
                if await request.is_disconnected():
                    self.stepper.release(generation)
                    return
                await asyncio.sleep(POLL_SECONDS)

        task = asyncio.ensure_future(watch())
        self._watched.add(task)
        task.add_done_callback(self._watched.discard)

    async def _answer(self, request: Request, ask: Ask, kind: type[shapes.Chat]) -> Response:
        try:
            asked = ask(await request.body(), self.settings, self.engine.max_model_len)
            generation = self._begin(asked)
            self._watch(request, generation)
            shape = kind(asked.model)
            if asked.stream:
                events = self._events(asked, generation, shape)
                return StreamingResponse(events, media_type="text/event-stream")
            async for _ in generation.changes():
                pass
        except RefusedError as error:
            return error.response()
        except EngineDeadError as error:
            self._interrupt()
            return RefusedError(str(error)).response()
        texts = [output.text for output in generation.outputs]
        reasons = [output.finish_reason or "cancelled" for output in generation.outputs]
        return JSONResponse(shape.whole(texts, reasons, _counts(generation)))

    async def _events(
        self, asked: Question, generation: Generation, shape: shapes.Chat
    ) -> AsyncIterator[str]:
        """A failure is raised here: the connection then ends, with no event and no `[DONE]`."""
        views = [Visible(output, asked.sampling) for output in generation.outputs]
        told = _counts(generation) if asked.continuous_usage else None
        for event in shape.first(len(views), told):
            yield event
        try:
            async for _ in generation.changes():
                for index, view in enumerate(views):
                    fresh = view.take()
                    if fresh is not None:
                        counts = _counts(generation) if asked.continuous_usage else None
                        yield shape.delta(index, fresh[0], fresh[2], counts)
        except EngineDeadError as error:
            self.log(f"[TRT-LLM] [E] {error}")
            self._interrupt()
            raise
        if asked.usage:
            yield shape.usage_event(_counts(generation))
        yield "data: [DONE]\n\n"

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, question.chat, shapes.Chat)

    async def completion(self, request: Request) -> Response:
        return await self._answer(request, question.completion, shapes.Completion)

    async def health(self, _: Request) -> Response:
        if self.engine.alive:
            return Response(status_code=200)
        self._interrupt()
        return PlainTextResponse(UNAVAILABLE, status_code=503)

    async def health_generate(self, _: Request) -> Response:
        body = b'{"model": "health", "prompt": "ping", "max_tokens": 1}'
        try:
            generation = self._begin(
                question.completion(body, self.settings, self.engine.max_model_len)
            )
            async for _change in generation.changes():
                pass
        except EngineDeadError as error:
            self._interrupt()
            return PlainTextResponse(f"Generation health check failed: {error}", status_code=500)
        return PlainTextResponse("Generation health check OK")

    async def version(self, _: Request) -> Response:
        return JSONResponse({"version": VERSION})

    async def models(self, _: Request) -> Response:
        row = {"id": self.settings.name, "object": "model", "created": int(time.time())}
        return JSONResponse({"object": "list", "data": [{**row, "owned_by": "tensorrt_llm"}]})

    async def metrics(self, _: Request) -> Response:
        return JSONResponse(self.statistics.drain())

    async def prometheus(self, _: Request) -> Response:
        text = self.statistics.text(len(self.stepper.running), len(self.stepper.waiting))
        if text is None:
            return JSONResponse({"detail": "Not Found"}, status_code=404)
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return PlainTextResponse(text, media_type=kind)

    def app(self) -> Starlette:
        routes = [
            Route("/health", self.health),
            Route("/health_generate", self.health_generate),
            Route("/version", self.version),
            Route("/v1/models", self.models),
            Route("/metrics", self.metrics),
            Route("/prometheus/metrics", self.prometheus),
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/completions", self.completion, methods=["POST"]),
        ]
        return Starlette(routes=routes, exception_handlers={404: _detail, 405: _detail})


def _counts(generation: Generation) -> dict[str, Any]:
    return shapes.usage(generation.prompt_tokens, generation.output_tokens)


async def _detail(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return JSONResponse({"detail": getattr(error, "detail", "")}, status_code=status)
