"""An engine of the tests': a real HTTP server on loopback that does what its prompt says."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.gateway_nginx.running import until
from tests.providers.local_sshd import free_port

OWN_NAME = "served/Own-Name"
TENSORS = b'\x00\xff{"model_name":"as it is"}' * 5000
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


@dataclass
class Seen:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Engine:
    """`behaviour` is the prompt of a completion, or `prompt` in other bodies."""

    port: int = field(default_factory=free_port)
    name: str = OWN_NAME
    healthy: bool = True
    refusing: bool = False
    """Whether it answers 503 to all that is asked of it, as while it ends."""
    seen: list[Seen] = field(default_factory=list)
    generating: int = 0
    most_at_once: int = 0
    started: int = 0
    pause_s: float = 0.02

    def __post_init__(self) -> None:
        self.release = threading.Event()
        self.start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serve in a thread of its own."""
        routes = [
            Route("/health", self._health, methods=["GET"]),
            Route("/{path:path}", self._anything, methods=["GET", "POST", "PUT", "DELETE"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), host="127.0.0.1", port=self.port, log_level="critical"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until(lambda: self._server.started, "the engine listens")

    def stop(self) -> None:
        """End it, connections too."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)

    async def _health(self, _request: Request) -> Response:
        return Response(status_code=200 if self.healthy else 503)

    async def _anything(self, request: Request) -> Response:
        body = await request.body()
        path = request.scope["raw_path"].decode("latin-1")
        self.seen.append(Seen(request.method, path, dict(request.headers), body))
        try:
            asked: dict[str, Any] = json.loads(body)
        except ValueError:
            asked = {}
        if self.refusing:
            return JSONResponse({"error": "unavailable"}, 503)
        if request.method == "GET" and path == "/v2/models/demo.gemma":
            return JSONResponse({"name": self.name, "inputs": [{"name": "text_input"}]})
        if "inference-header-content-length" in request.headers:
            return self._tensors()
        prompt = str(asked.get("prompt", ""))
        if prompt == "wait":
            await self._held(request)
        return self._answer(path, prompt, bool(asked.get("stream")))

    async def _held(self, request: Request) -> None:
        """As vLLM and trtllm-serve do: the client's going is looked for now and then."""
        self._begin()
        try:
            while not self.release.is_set() and not await request.is_disconnected():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        finally:
            self.generating -= 1

    def _answer(self, path: str, behaviour: str, stream: bool) -> Response:
        if behaviour.startswith("error "):
            status, _, text = behaviour.removeprefix("error ").partition(" ")
            return PlainTextResponse(text, int(status), media_type="application/json")
        if behaviour.startswith("raw "):
            kind = "text/event-stream" if stream else "application/json"
            return PlainTextResponse(behaviour.removeprefix("raw "), media_type=kind)
        if stream or path == "/v1/stream" or path.endswith("generate_stream"):
            lines = self._events(path, behaviour)
            return StreamingResponse(lines, media_type="text/event-stream")
        if path.startswith("/v2/models"):
            return JSONResponse({"model_name": self.name, "outputs": []})
        if behaviour == "half":
            return StreamingResponse(self._half(), media_type="application/json")
        answer = {"id": "cmpl-1", "model": self.name, "choices": [{"text": "ok"}], "usage": USAGE}
        return JSONResponse(answer, headers={"x-engine-secret": "1", "x-request-id": "theirs"})

    def _tensors(self) -> Response:
        head = json.dumps({"model_name": self.name, "outputs": [{"name": "text_output"}]}).encode()
        length = {"Inference-Header-Content-Length": str(len(head))}
        return Response(head + TENSORS, media_type="application/octet-stream", headers=length)

    async def _half(self) -> AsyncIterator[str]:
        yield '{"model":'
        raise ConnectionError("as it was told")

    async def _released(self) -> None:
        while not self.release.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)

    def _begin(self) -> None:
        self.generating += 1
        self.started += 1
        self.most_at_once = max(self.most_at_once, self.generating)

    async def _events(self, path: str, behaviour: str) -> AsyncIterator[str]:
        word, _, number = behaviour.partition(" ")
        self._begin()
        try:
            for i in range(int(number or 3)):
                if path.endswith("generate_stream"):
                    yield f'data: {{"model_name":"{self.name}","text_output":"{i}"}}\n\n'
                elif path == "/v1/stream":
                    yield f'event: token\ndata: {{"model":"{self.name}","text":"{i}"}}\n\n'
                else:
                    choice = json.dumps([{"text": str(i), "index": 0}])
                    yield f'data: {{"model":"{self.name}","choices":{choice}}}\n\n'
                await asyncio.sleep(self.pause_s)
            if word == "die":
                raise ConnectionError("as it was told")
            if word == "hang":
                await self._released()
            if path == "/v1/stream":
                yield "event: end\ndata: {}\n\n"
            elif path.startswith("/v1") and word != "stop":
                last = {"model": self.name, "choices": [], "usage": USAGE}
                yield f"data: {json.dumps(last)}\n\n"
                yield "data: [DONE]\n\n"
        finally:
            self.generating -= 1
