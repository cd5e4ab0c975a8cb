"""vLLM's paths. The key guards /v1 only: /health, /metrics, /tokenize and others stay open."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sandbox.serving.chat_prompt import chat_prompt
from sandbox.serving.disconnect import unless_gone
from sandbox.serving.steps import EngineDeadError, Stepper
from sandbox.vllm_standin.answers import tokens_of
from sandbox.vllm_standin.engine import Engine

from . import VERSION, question, shapes
from .answering import Answering
from .errors import RefusedError, engine_dead
from .metrics import Metrics
from .settings import Settings

WATCHDOG_SECONDS = 5.0
"""vLLM's own: how long a dead engine may go unnoticed where no request comes."""
Ask = Callable[[dict[str, Any], Settings], question.Question]


@dataclass
class Server:
    """The paths' handlers around one engine."""

    settings: Settings
    engine: Engine
    log: Callable[[str], None]
    load: int = 0
    created: int = field(default_factory=lambda: int(time.time()))
    http: uvicorn.Server | None = None

    def __post_init__(self) -> None:
        wanted = self.settings.log_stats
        self.metrics = Metrics(self.settings.names[0], self.engine.kv_tokens, wanted)
        self.stepper = Stepper(self.engine, self.settings.max_running, self.metrics)
        name = self.engine.checkpoint.name
        self.answering = Answering(self.stepper, self.settings, name, self.log, self.engine.is_mute)

    async def beside(self, http: uvicorn.Server) -> None:
        """Step, and end the server some time after its engine ended."""
        self.http = http
        steps = asyncio.ensure_future(self.stepper.run())
        try:
            while True:
                await asyncio.sleep(WATCHDOG_SECONDS)
                self.leave_if_dead()
        finally:
            steps.cancel()

    def leave_if_dead(self) -> None:
        if self.http is not None and not self.engine.alive:
            self.http.should_exit = True

    async def _answer(
        self, request: Request, ask: Ask, kind: type[shapes.Chat]
    ) -> Response | StreamingResponse:
        self.load += 1
        try:
            body = question.parse_body(await request.body())
            question.check_model(body, self.settings)
            asked = ask(body, self.settings)
            self.engine.meet_a_request()
            if not self.engine.alive:
                raise EngineDeadError
            request_id = request.headers.get("x-request-id") or body.get("request_id")
            shape = kind(self.settings.names[0], self.settings.role, request_id)
            if asked.stream:
                events = self.answering.stream(asked, shape)
                return StreamingResponse(events, media_type="text/event-stream")
            answer = await unless_gone(request, self.answering.whole(asked, shape))
            return Response(status_code=499) if answer is None else JSONResponse(answer)
        except RefusedError as error:
            return error.response()
        except EngineDeadError as error:
            self.leave_if_dead()
            return engine_dead(error).response()
        finally:
            self.load -= 1

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, question.chat, shapes.Chat)

    async def completion(self, request: Request) -> Response:
        return await self._answer(request, question.completion, shapes.Completion)

    async def invocations(self, request: Request) -> Response:
        """SageMaker's one path: which API is meant shows in the body."""
        chat = b'"messages"' in await request.body()
        return await (self.chat(request) if chat else self.completion(request))

    async def models(self, _: Request) -> Response:
        rows: list[dict[str, Any]] = [
            {
                "id": name,
                "object": "model",
                "created": self.created,
                "owned_by": "vllm",
                "root": str(self.settings.model),
                "parent": None,
                "max_model_len": self.settings.max_model_len,
                "permission": [],
            }
            for name in self.settings.names
        ]
        return JSONResponse({"object": "list", "data": rows})

    async def health(self, _: Request) -> Response:
        return Response(status_code=200 if self.engine.alive else 503)

    async def version(self, _: Request) -> Response:
        return JSONResponse({"version": VERSION})

    async def show_load(self, _: Request) -> Response:
        return JSONResponse({"server_load": self.load})

    async def show_metrics(self, _: Request) -> Response:
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return PlainTextResponse(self.metrics.text(self.stepper), media_type=kind)

    async def tokenize(self, request: Request) -> Response:
        """Counts are right; the ids are only numbers."""
        try:
            body = question.parse_body(await request.body())
            question.check_model(body, self.settings)
            prompt = body.get("prompt")
            if prompt is None:
                template, model = self.settings.template, self.settings.model
                prompt = chat_prompt(model, template, body.get("messages") or [])
        except RefusedError as error:
            return error.response()
        count = tokens_of(str(prompt))
        most = self.settings.max_model_len
        tokens = {"count": count, "max_model_len": most, "tokens": list(range(2, count + 2))}
        return JSONResponse({**tokens, "token_strs": None})

    async def unplayed(self, request: Request) -> Response:
        told = f"the stand-in does not play {request.url.path}"
        return RefusedError(told, 501, "NotImplementedError").response()

    def app(self) -> ASGIApp:
        """The whole application, behind the key where there is one."""
        get: list[tuple[str, Callable[[Request], Awaitable[Response]]]] = [
            ("/health", self.health),
            ("/version", self.version),
            ("/metrics", self.show_metrics),
            ("/load", self.show_load),
            ("/v1/models", self.models),
        ]
        post: list[tuple[str, Callable[[Request], Awaitable[Response]]]] = [
            ("/v1/chat/completions", self.chat),
            ("/v1/completions", self.completion),
            ("/invocations", self.invocations),
            ("/tokenize", self.tokenize),
            ("/detokenize", self.unplayed),
            ("/v1/responses", self.unplayed),
            ("/v1/messages", self.unplayed),
        ]
        routes = [Route(path, handler) for path, handler in get]
        routes += [Route(path, handler, methods=["POST"]) for path, handler in post]
        routes.append(Route("/ping", self.health, methods=["GET", "POST"]))
        plain = Starlette(routes=routes, exception_handlers={404: _detail, 405: _detail})
        return Guard(plain, self.settings) if self.settings.keys else plain


async def _detail(_: Request, error: Exception) -> Response:
    """FastAPI's answer for what no route takes."""
    status = getattr(error, "status_code", 404)
    return JSONResponse({"detail": getattr(error, "detail", "")}, status_code=status)


class Guard:
    """401 for /v1 without a key, whether or not the path exists."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", "")).removeprefix(self._settings.root_path)
        if scope["type"] == "http" and path.startswith("/v1") and scope["method"] != "OPTIONS":
            given = Request(scope).headers.get("authorization", "")
            scheme, _, key = given.partition(" ")
            known = (hmac.compare_digest(key.encode(), k.encode()) for k in self._settings.keys)
            if scheme.lower() != "bearer" or not any(known):
                refused = JSONResponse({"error": "Unauthorized"}, status_code=401)
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)
