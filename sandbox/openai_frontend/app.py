"""The frontend's paths. A client that leaves is not noticed: its generation runs to the end."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from . import question
from .child import Child, TritonError
from .errors import RefusedError
from .models import Model, Models
from .question import Prompting, Question

Chunk = Callable[[str | None, bool], dict[str, Any]]


def _chat_chunk(text: str | None, last: bool) -> dict[str, Any]:
    delta: dict[str, Any] = {"content": text} if text is not None else {}
    if text is None:
        delta = {"role": "assistant", "content": ""}
    return {"delta": delta, "finish_reason": "stop" if last else None}


def _completion_chunk(text: str | None, last: bool) -> dict[str, Any]:
    return {"text": text, "finish_reason": "stop" if last else None}


@dataclass
class Counts:
    """Tokens so far; `None` where the model does not tell them."""

    prompt: int | None = None
    output: int | None = None

    def add(self, response: dict[str, Any]) -> None:
        """vLLM's and the ensemble's counts, of which a stream has one with each response."""
        if "num_input_tokens" in response:
            self.prompt = int(response["num_input_tokens"])
        if "num_output_tokens" in response:
            self.output = (self.output or 0) + int(response["num_output_tokens"])

    @property
    def usage(self) -> dict[str, int] | None:
        if self.prompt is None or self.output is None:
            return None
        counts = {"prompt_tokens": self.prompt, "completion_tokens": self.output}
        return {**counts, "total_tokens": self.prompt + self.output}


@dataclass
class Frontend:
    """The handlers around one Triton."""

    child: Child
    models: Models
    prompting: Prompting
    restricted: dict[str, tuple[str, str]]
    most_bytes: int
    _draining: set[asyncio.Task[None]] = field(default_factory=set)

    async def _answer(self, request: Request, chat: bool) -> Response:
        known = question.CHAT_FIELDS if chat else question.COMPLETION_FIELDS
        needed = "messages" if chat else "prompt"
        body = question.parse_body(await request.body(), known, needed)
        model = self.models.find(body["model"], 400)
        ask = question.chat if chat else question.completion
        asked = ask(body, model, self.prompting)
        if asked.stream:
            events = self._events(asked, model, chat)
            return StreamingResponse(events, media_type="text/event-stream")
        try:
            model.check(asked.body)
            found = await self.child.post(f"models/{model.name}/generate", asked.body)
        except TritonError as error:
            raise RefusedError(str(error), 500) from error
        counts = Counts()
        counts.add(found)
        # Whatever ended it.
        ending = {"index": 0, "logprobs": None, "finish_reason": "stop"}
        text = found["text_output"]
        said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        name = "chat.completion" if chat else "text_completion"
        answer = {**_head(name, model), "choices": [{**ending, **said}]}
        return JSONResponse(answer | ({"usage": counts.usage} if counts.usage else {}))

    async def _events(self, asked: Question, model: Model, chat: bool) -> AsyncIterator[str]:
        """An error of the model breaks the connection: there is no event for it."""
        name = "chat.completion.chunk" if chat else "text_completion"
        head, shape = _head(name, model), _chat_chunk if chat else _completion_chunk
        counts = Counts()

        def event(text: str | None, last: bool = False) -> str:
            return _event({**head, "choices": [{"index": 0, **shape(text, last)}]})

        if chat:
            yield event(None)
        held: str | None = None
        async for response in self._responses(model, asked):
            counts.add(response)
            if held is not None:
                yield event(held)
            held = response["text_output"]
        if held is not None:
            yield event(held, last=True)
        if asked.usage and counts.usage:
            yield _event({**head, "choices": [], "usage": counts.usage})
        yield "data: [DONE]\n\n"

    async def _responses(self, model: Model, asked: Question) -> AsyncIterator[dict[str, Any]]:
        """What Triton sends, read to its end by a task of its own even if nobody listens."""
        queue: asyncio.Queue[dict[str, Any] | Exception | None] = asyncio.Queue()

        async def drain() -> None:
            try:
                model.check(asked.body)
                async for response in self.child.stream(model.name, asked.body):
                    queue.put_nowait(response)
            except Exception as error:  # noqa: BLE001 (raised again where it is read)
                queue.put_nowait(error)
            queue.put_nowait(None)

        task = asyncio.ensure_future(drain())
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)
        while (found := await queue.get()) is not None:
            if isinstance(found, Exception):
                raise found
            yield found

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, chat=True)

    async def completion(self, request: Request) -> Response:
        return await self._answer(request, chat=False)

    async def list_models(self, _: Request) -> Response:
        return JSONResponse({"object": "list", "data": self.models.rows()})

    async def one_model(self, request: Request) -> Response:
        return JSONResponse(self.models.find(request.path_params["name"], 404).row)

    async def load(self, request: Request) -> Response:
        return JSONResponse((await self.models.load(request.path_params["name"])).row)

    async def unload(self, request: Request) -> Response:
        name = request.path_params["name"]
        await self.models.unload(name)
        return JSONResponse({"status": "success", "model": name})

    async def ready(self, _: Request) -> Response:
        if not await self.child.ready():
            raise RefusedError("Attempted to check readiness of a server that is not ready")
        return Response(status_code=200)

    async def metrics(self, _: Request) -> Response:
        return PlainTextResponse(await self.child.metrics())

    def app(self) -> ASGIApp:
        post = ["POST"]
        routes = [
            Route("/v1/chat/completions", self.chat, methods=post),
            Route("/v1/completions", self.completion, methods=post),
            Route("/v1/models", self.list_models),
            Route("/v1/models/{name}", self.one_model),
            Route("/v1/models/{name}/load", self.load, methods=post),
            Route("/v1/models/{name}/unload", self.unload, methods=post),
            Route("/metrics", self.metrics),
            Route("/health/ready", self.ready),
        ]
        handlers = {404: _detail, 405: _detail, RefusedError: _refused}
        plain = Starlette(routes=routes, exception_handlers=handlers)
        return Guard(plain, self.restricted, self.most_bytes)


def _head(name: str, model: Model) -> dict[str, Any]:
    """Chats have completions' ids too."""
    made = {"id": f"cmpl-{uuid.uuid4()}", "created": int(time.time()), "model": model.name}
    return {**made, "object": name, "system_fingerprint": None}


def _event(chunk: dict[str, Any]) -> str:
    return f"data: {json.dumps(chunk, ensure_ascii=False, separators=(',', ':'))}\n\n"


async def _detail(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return JSONResponse({"detail": getattr(error, "detail", "")}, status_code=status)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)  # noqa: S101
    return error.response()


class Guard:
    """Restricted groups of paths, and the largest body."""

    def __init__(self, app: ASGIApp, restricted: dict[str, tuple[str, str]], most: int) -> None:
        self._app, self._restricted, self._most = app, restricted, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(Request(scope)) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if int(request.headers.get("content-length") or 0) > self._most:
            told = {"message": f"Request body exceeds {self._most} bytes"}
            told |= {"type": "invalid_request_error", "code": "content_too_large"}
            return JSONResponse({"error": told}, status_code=413)
        header, value = self._restricted.get(_group(request.url.path), ("", ""))
        if header and request.headers.get(header) != value:
            words = "This API is restricted, expecting header"
            told = {"message": f"{words} '{header}'", "type": "authentication_error"}
            return JSONResponse({"error": {**told, "code": "invalid_auth"}}, status_code=401)
        return None


def _group(path: str) -> str:
    if path.startswith("/v1/models"):
        return "model-repository"
    if path.startswith("/v1/"):
        return "inference"
    return {"/metrics": "metrics", "/health/ready": "health"}.get(path, "")
