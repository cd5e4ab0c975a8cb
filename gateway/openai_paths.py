"""POST /v1/chat/completions and /v1/completions, streamed or not."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from engines.failure import EngineError
from engines.protocol import End, Request, Usage
from gateway import errors
from gateway.answers import Shape, event_of
from gateway.bodies import ChatBody, CompletionBody, parsed
from gateway.choices import completed, streamed
from gateway.client import EventStream, body_of, while_connected
from gateway.measures import Measures
from gateway.request import Watch, asked_of, id_of
from gateway.table import Role, Table


@dataclass(frozen=True)
class _Call:
    role: Role
    body: ChatBody | CompletionBody
    id: str
    prompts: int

    @property
    def shape(self) -> Shape:
        chat = isinstance(self.body, ChatBody)
        identity = f"{'chatcmpl' if chat else 'cmpl'}-{self.id}"
        return Shape(chat, self.role.name, identity, int(time.time()))

    async def asked(self) -> list[Request]:
        return await asked_of(self.role, self.body, self.id)


class OpenAiPaths:
    """The two paths, which differ in little but their shapes."""

    def __init__(self, table: Table, measures: Measures) -> None:
        self._table = table
        self._measures = measures

    async def chat(self, http: HttpRequest) -> Response:
        """Messages in, a message out."""
        body = parsed(ChatBody, await body_of(http, self._table.config.max_body_mib))
        return await self._answered(http, body, 1)

    async def completion(self, http: HttpRequest) -> Response:
        """A text in, its continuation out."""
        body = parsed(CompletionBody, await body_of(http, self._table.config.max_body_mib))
        return await self._answered(http, body, len(body.prompt))

    async def _answered(
        self, http: HttpRequest, body: ChatBody | CompletionBody, prompts: int
    ) -> Response:
        call = _Call(self._table.role(body.model), body, id_of(http), prompts)
        watch = Watch(self._measures, call.role)
        if not body.stream:
            return await while_connected(http, _whole(call, watch))
        events = _events(call, watch)
        try:
            # A failure before the first text still has an HTTP status of its own.
            first = await while_connected(http, anext(events))
        except BaseException:
            await events.aclose()
            raise
        return EventStream(events, first)


async def _whole(call: _Call, watch: Watch) -> Response:
    with watch:
        try:
            answers = await completed(call.role.engine, await call.asked())
        except EngineError as error:
            watch.status = error.status
            raise
        watch.status = 200
        return JSONResponse(call.shape.whole(answers, call.prompts))


async def _events(call: _Call, watch: Watch) -> AsyncGenerator[str, None]:
    shape, opened = call.shape, set[int]()
    with watch:
        try:
            asked = await call.asked()
            usages = [Usage()] * len(asked)
            async with aclosing(streamed(call.role.engine, asked)) as events:
                async for number, event in events:
                    if shape.chat and number not in opened:
                        yield shape.opening(number)
                    opened.add(number)
                    if isinstance(event, End):
                        usages[number] = event.usage
                    else:
                        watch.first()
                    yield shape.event(number, event)
            counts = shape.counts(usages, call.prompts)
            if counts and call.body.stream_options.include_usage:
                yield counts
            watch.status = 200
            yield "data: [DONE]\n\n"
        except EngineError as error:
            watch.status = error.status
            if not opened:
                raise
            yield event_of(errors.told(error))
