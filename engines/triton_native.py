"""What Triton's models have in common behind KServe's generate extension."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar
from urllib.parse import quote

import httpx

from engines.asked_token import CANARY, answers_a_token
from engines.doubt import Doubt
from engines.error_body import error_of, is_error, parsed
from engines.failure import broken
from engines.link import Link
from engines.metrics import Metrics
from engines.openai_api import only
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
from engines.stop_sequences import StopSequences
from engines.stream import Stream
from engines.triton_metrics import triton_metrics
from models.instance import CONTROL_HEADER


class TritonNative(ABC):
    """A model that takes a prompt as `text_input` and gives `text_output`.

    A connection that closes cancels the request since Triton 2.41 (23.12), so a stop sequence that
    is found here ends the generation too.
    """

    renders_chat: ClassVar[bool] = False
    stops: ClassVar[Stops] = Stops.AT_ONCE
    name: ClassVar[str]
    carries: ClassVar[frozenset[str]]
    says_its_end: ClassVar[bool] = True
    """Whether the last response has a finish_reason: without it, the end may be a broken one."""

    def __init__(
        self, http: httpx.AsyncClient, upstream: Upstream, patience: Patience | None = None
    ) -> None:
        self._patience = patience or Patience()
        self._upstream = upstream
        self._link = Link(http, upstream, self._patience, CONTROL_HEADER)
        self._doubt = Doubt(self._canary, self._patience.doubt_s)
        self._path = f"/v2/models/{quote(upstream.model, safe='')}"

    @abstractmethod
    def body(self, request: Request, sampling: dict[str, Any], *, stream: bool) -> dict[str, Any]:
        """The model's own input names."""

    def growth(self, said: str, before: str) -> tuple[str, int]:  # noqa: ARG002
        """What is new in a response's text after all that came `before`, or else how many of the
        last characters the engine takes back."""
        return said, 0

    def responses(self, request: Request) -> AsyncGenerator[str, None]:
        """A stream's responses as they come; closing it ends the request."""
        body = self.asked(request, stream=True)
        return self._link.events(f"{self._path}/generate_stream", body, "")

    @property
    def computes(self) -> str:
        """Triton's name of the model whose metrics are the engine's."""
        return self._upstream.model

    async def health(self) -> Health:
        """Liveness: strict readiness stays 400 for good after any model's failed first load."""
        return await self._link.looks_well("/v2/health/live")

    async def ready(self) -> Health:
        """READY outlives the backend's process, so a token has the last word."""
        said = await self._link.looks_well(f"{self._path}/ready")
        return await answers_a_token(self._canary) if said.ok else said

    async def complete(self, request: Request) -> Completion:
        return await self._doubt.watched(self._complete(request))

    async def _canary(self) -> Completion:
        return await self._complete(CANARY)

    async def _complete(self, request: Request) -> Completion:
        body = self.asked(request, stream=False)
        said = await self._link.ask(f"{self._path}/generate", body, "")
        reading = _Reading(request, said)
        stop = StopSequences(request.sampling.stop)
        text = stop.feed(reading.text)
        text += stop.end()
        return Completion(text, reading.finish_reason(cut=stop.hit), reading.usage)

    def stream(self, request: Request) -> Stream:
        return Stream(self._events(request), self._patience, self._doubt)

    async def cancel(self, stream: Stream) -> Stops:
        await stream.aclose()
        return self.stops

    async def version(self) -> Version:
        answer = await self._link.get("/v2")
        try:
            return Version("triton", str(answer.json()["version"]))
        except (ValueError, KeyError, TypeError):
            return Version("triton", None)

    async def metrics(self) -> Metrics:
        """None at all where Triton's metrics have no address (`--allow-metrics=false`)."""
        if not self._upstream.metrics_url:
            return Metrics()
        answer = await self._link.get(self._upstream.metrics_url)
        try:
            if not answer.is_success:
                raise ValueError
            return triton_metrics(answer.text, self._upstream.model, self.computes)
        except ValueError:
            raise broken(f"the metrics' port answers {answer.status_code} and none") from None

    async def _events(self, request: Request) -> AsyncGenerator[Event, None]:
        reading, whole = _Reading(request), ""
        stop = StopSequences(request.sampling.stop)
        async with aclosing(self.responses(request)) as responses:
            async for data in responses:
                new, gone = self.growth(reading.take(_response(data)), whole)
                whole = (
                    whole + new if not stop.take_back(gone) else whole[: len(whole) - gone] + new
                )
                safe = stop.feed(new)
                if safe:
                    yield Delta(safe)
                if stop.hit:
                    break  # Leaving ends the generation.
        if self.says_its_end and not stop.hit and reading.said_reason is None:
            raise broken("the engine ended the answer before its end")
        if held := stop.end():
            yield Delta(held)
        yield End(reading.finish_reason(cut=stop.hit), reading.usage)

    def asked(self, request: Request, *, stream: bool) -> dict[str, Any]:
        """What is posted for a request, by the model's own input names."""
        if request.prompt is None:
            raise ValueError("this engine takes a prompt: render the chat template first")
        body = self.body(request, only(request, self.carries, self.name), stream=stream)
        return body | ({"id": request.id} if request.id else {})


class _Reading:
    """Responses, added up: token counts are deltas too, the prompt's comes again with each."""

    def __init__(self, request: Request, first: dict[str, Any] | None = None) -> None:
        self._most = request.sampling.max_tokens
        self._prompt: int | None = None
        self._made: int | None = None
        self.said_reason: str | None = None
        self.text = self.take(first) if first is not None else ""

    def take(self, said: dict[str, Any]) -> str:
        """The response's own text."""
        text = _scalar(said.get("text_output", ""))
        if not isinstance(text, str):
            raise broken("the engine's answer has no text_output")
        prompt, made = _scalar(said.get("num_input_tokens")), _scalar(said.get("num_output_tokens"))
        if isinstance(prompt, int):
            self._prompt = max(prompt, self._prompt or 0)
        if isinstance(made, int):
            self._made = made + (self._made or 0)
        reason = _scalar(said.get("finish_reason"))
        # Python's None as text is how both backends say "not yet".
        self.said_reason = (
            reason if isinstance(reason, str) and reason not in ("", "None") else None
        )
        return text

    @property
    def usage(self) -> Usage:
        return Usage(self._prompt, self._made)

    def finish_reason(self, *, cut: bool) -> str:
        """The engine's; without one, an answer as long as was allowed was cut."""
        if cut:
            return "stop"
        if self.said_reason is None:
            return "length" if self._made is not None and self._made == self._most else "stop"
        if self.said_reason not in ("stop", "length"):
            raise broken(f"the engine ended the answer: {self.said_reason}")
        return self.said_reason


def _scalar(value: object) -> object:
    """A tensor of one element comes as it is or in lists, by its declared shape."""
    while isinstance(value, list):
        value = value[0] if value else ""
    return value


def _response(data: str) -> dict[str, Any]:
    said = parsed(data)
    if is_error(said):
        raise error_of(500, said)
    if not isinstance(said, dict):
        raise broken("an event of the engine is not a JSON object")
    return said
