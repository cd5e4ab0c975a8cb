"""Triton's generate extension in front of its three kinds of language models, as facts say."""

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

from models.engine import part_name

VLLM = "triton-vllm"
LLMAPI = "triton-llmapi"
BATCHER = "triton-batcher"
BATCHER_METRICS = """
# TYPE nv_trt_llm_request_metrics gauge
nv_trt_llm_request_metrics{model="PART",request_type="active",version="1"} 3
nv_trt_llm_request_metrics{model="PART",request_type="waiting",version="1"} 1
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="PART",version="1"} 0.5
# TYPE nv_llm_output_token_len histogram
nv_llm_output_token_len_bucket{model="PART",version="1",le="+Inf"} 2
nv_llm_output_token_len_sum{model="PART",version="1"} 70
nv_llm_output_token_len_count{model="PART",version="1"} 2
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="m",version="1"} 5
nv_inference_request_success{model="PART",version="1"} 4
""".replace("PART", part_name("m", "tensorrt_llm"))
"""What a server says that holds a batcher `m`: requests are the ensemble's, the rest its part's."""


@dataclass
class FakeTriton:
    """A server that holds one model, `m`, of `kind`."""

    kind: str
    tokens: list[str] = field(default_factory=lambda: ["Hello", ",", " wörld", "!"])
    finish: str = "stop"
    endless: bool = False
    stub_killed: bool = False
    """Inference fails, and everything else goes on saying that all is well."""
    break_after: int | None = None
    fail_after: int | None = None
    refuse: tuple[int, Any] | None = None
    metrics: str = ""
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
                Route("/v2", lambda _: JSONResponse({"name": "triton", "version": "2.51.0"})),
                Route("/v2/health/live", lambda _: Response()),
                Route("/v2/models/m/ready", lambda _: Response()),
                Route("/v2/models/m/generate", self._generate, methods=["POST"]),
                Route("/v2/models/m/generate_stream", self._stream, methods=["POST"]),
                Route("/metrics", lambda _: PlainTextResponse(self.metrics)),
            ]
        )

    async def _asked(self, request: Request) -> tuple[dict[str, Any], Response | None]:
        body = await request.json()
        self.headers.append(dict(request.headers))
        self.seen.append(body)
        if self.stub_killed:
            return body, JSONResponse({"error": "Stub process 'm_0_0' is not healthy."}, 400)
        return body, JSONResponse(self.refuse[1], self.refuse[0]) if self.refuse else None

    async def _generate(self, request: Request) -> Response:
        body, refusal = await self._asked(request)
        if refusal:
            return refusal
        if body.get("stream") or body.get("streaming"):
            reason = "generate expects model to produce exactly 1 response, use generate stream"
            return JSONResponse({"error": reason})
        if self.stall or self.dies:
            await self._stalled(request)
        await self._slowly()
        text = "".join(self.tokens)
        excluded = body.get("exclude_input_in_output") or body.get(
            "sampling_param_exclude_input_from_output"
        )
        answer = self._response("" if excluded else body["text_input"], text, len(self.tokens))
        return JSONResponse(answer | self._reason(self.finish, body))

    async def _stream(self, request: Request) -> Response:
        body, refusal = await self._asked(request)
        if refusal:
            # The status is the first response's, and the words are framed as an event.
            content = f"data: {bytes(refusal.body).decode()}\n\n"
            return Response(content, refusal.status_code, media_type="text/event-stream")
        return StreamingResponse(self._events(body), media_type="text/event-stream")

    async def _events(self, body: dict[str, Any]) -> AsyncIterator[str]:
        self.running += 1
        try:
            sent, whole = 0, ""
            while True:
                for number, token in enumerate(self.tokens, 1):
                    if sent == self.hang_after:
                        self.refuse = (400, {"error": "Stub process 'm_0_0' is not healthy."})
                        await asyncio.Event().wait()
                    if sent == self.break_after:
                        raise ConnectionAbortedError
                    if sent == self.fail_after:
                        yield 'data: {"error":"Error generating stream: boom"}\n\n'
                        return
                    sent += 1
                    whole += token
                    last = number == len(self.tokens) and not self.endless
                    answer = self._response("", whole if self.kind == LLMAPI else token, 1)
                    answer |= self._reason(self.finish if last else "None", body)
                    yield f"data: {json.dumps(answer)}\n\n"
                    await asyncio.sleep(self.slow_s or (0.005 if self.endless else 0))
                if not self.endless:
                    return
        finally:
            self.running -= 1

    def _response(self, before: str, text: str, tokens: int) -> dict[str, Any]:
        answer: dict[str, Any] = {"model_name": "m", "text_output": before + text}
        if self.kind == LLMAPI:
            return answer
        return answer | {"num_input_tokens": 3, "num_output_tokens": tokens}

    def _reason(self, reason: str, body: dict[str, Any]) -> dict[str, str]:
        asked = self.kind != BATCHER and body.get("return_finish_reason")
        return {"finish_reason": reason} if asked else {}
