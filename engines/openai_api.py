"""What engines with OpenAI's API have in common."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar

import httpx

from engines.asked_token import CANARY, answers_a_token
from engines.doubt import Doubt
from engines.error_body import error_of, is_error
from engines.failure import EngineError, broken, refused
from engines.link import Link
from engines.protocol import (
    Completion,
    Delta,
    End,
    Event,
    Health,
    Patience,
    Request,
    Stops,
    Upstream,
    Usage,
    Version,
)
from engines.stream import Stream


class OpenAiEngine:
    """An engine that answers at /v1; each kind says how it differs."""

    renders_chat: ClassVar[bool] = True
    stops: ClassVar[Stops] = Stops.AT_ONCE
    name: ClassVar[str]
    carries: ClassVar[frozenset[str]]
    """The sampling fields that its schema knows: an unknown one is an error at most of them."""
    health_path: ClassVar[str] = "/health"

    def __init__(
        self, http: httpx.AsyncClient, upstream: Upstream, patience: Patience | None = None
    ) -> None:
        self._patience = patience or Patience()
        self._upstream = upstream
        self._link = Link(http, upstream, self._patience)
        self._doubt = Doubt(self._canary, self._patience.doubt_s)

    async def health(self) -> Health:
        return await self._link.looks_well(self.health_path)

    async def ready(self) -> Health:
        health = await self.health()
        listed = await self._listed() if health.ok else health
        return await answers_a_token(self._canary) if listed.ok else listed

    async def _listed(self) -> Health:
        """Whether the engine lists the model: some answer to any name with the one they have."""
        try:
            answer = await self._link.get("/v1/models")
            models = [str(row["id"]) for row in answer.json()["data"]]
        except EngineError as error:
            return Health(False, error.message, late=error.late)
        except (ValueError, KeyError, TypeError):
            return Health(False, f"/v1/models answers {answer.status_code} and no list")
        if self._upstream.model in models:
            return Health(True)
        held = ", ".join(models) or "nothing"
        return Health(False, f"serves {held}, not {self._upstream.model}")

    async def complete(self, request: Request) -> Completion:
        return await self._doubt.watched(self._complete(request))

    async def _canary(self) -> Completion:
        return await self._complete(CANARY)

    async def _complete(self, request: Request) -> Completion:
        path, body = self._asked(request)
        said = await self._link.ask(path, body, request.id)
        try:
            choice = said["choices"][0]
            message = choice.get("message") or {"content": choice.get("text")}
            text, reason = message.get("content") or "", choice.get("finish_reason")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise broken("the engine's answer is not OpenAI's") from None
        usage = _usage(said.get("usage"))
        reason = self.finish_reason(reason, usage, request)
        return Completion(text, reason, usage, _reasoning(message))

    def stream(self, request: Request) -> Stream:
        return Stream(self._events(request), self._patience, self._doubt)

    async def cancel(self, stream: Stream) -> Stops:
        await stream.aclose()
        return self.stops

    async def _events(self, request: Request) -> AsyncGenerator[Event, None]:
        path, body = self._asked(request)
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        reason, usage = None, Usage()
        async with aclosing(self._link.events(path, body, request.id)) as events:
            async for data in events:
                if data == "[DONE]":
                    break
                chunk = _object(data)
                usage = _usage(chunk["usage"]) if chunk.get("usage") else usage
                delta, ended = _delta(chunk)
                if delta.text or delta.reasoning:
                    yield delta
                reason = ended or reason
            else:
                # trtllm-serve logs an error in mid-stream and just ends the connection.
                raise broken("the engine ended the answer before its end")
        if reason is None:
            raise broken("the engine ended the answer without a reason")
        yield End(self.finish_reason(reason, usage, request), usage)

    async def version(self) -> Version:
        answer = await self._link.get("/version")
        try:
            return Version(self.name, str(answer.json()["version"]))
        except (ValueError, KeyError, TypeError):
            return Version(self.name, None)

    def finish_reason(self, said: str | None, usage: Usage, request: Request) -> str:  # noqa: ARG002
        """The engine's word; those that OpenAI does not have are failures."""
        if said in ("stop", "length"):
            return str(said)
        raise broken(f"the engine ended the answer: {said or 'no reason given'}")

    def _asked(self, request: Request) -> tuple[str, dict[str, Any]]:
        sampling = only(request, self.carries, self.name)
        body: dict[str, Any] = {"model": self._upstream.model} | sampling
        if request.prompt is not None:
            return "/v1/completions", body | {"prompt": request.prompt}
        return "/v1/chat/completions", body | {"messages": list(request.messages)}


def only(request: Request, carries: frozenset[str], engine: str) -> dict[str, Any]:
    """What was asked of the sampling, where the engine can do all of it.

    Raises:
        EngineError: it cannot; to leave the field out would change the answer unseen.
    """
    given = request.sampling.given()
    for field in given:
        if field not in carries:
            raise refused(f"{field} is not supported by this role's engine ({engine})", param=field)
    return given


def _object(data: str) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except ValueError:
        raise broken("an event of the engine is not JSON") from None
    if not isinstance(chunk, dict):
        raise broken("an event of the engine is not a JSON object")
    if is_error(chunk):
        error = chunk["error"] if isinstance(chunk.get("error"), dict) else chunk
        code = error.get("code")
        raise error_of(code if isinstance(code, int) and code >= 400 else 500, chunk)
    return chunk


def _delta(chunk: dict[str, Any]) -> tuple[Delta, str | None]:
    """The first choice's text and finish reason; the chunk with the usage has no choice."""
    try:
        choice: dict[str, Any] = next(iter(chunk.get("choices") or ()), {})
        said = choice.get("delta") or {"content": choice.get("text")}
        return Delta(said.get("content") or "", _reasoning(said)), choice.get("finish_reason")
    except (AttributeError, TypeError):
        raise broken("an event of the engine is not OpenAI's") from None


def _usage(said: object) -> Usage:
    if not isinstance(said, Mapping):
        return Usage()
    return Usage(said.get("prompt_tokens"), said.get("completion_tokens"))


def _reasoning(said: Mapping[str, Any]) -> str:
    """Thinking, where a reasoning parser tells it apart (vLLM has both names by version)."""
    return said.get("reasoning_content") or said.get("reasoning") or ""
