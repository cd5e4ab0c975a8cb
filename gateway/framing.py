"""POST /v1/stream: the orchestrator's events, for every engine alike.

`started` as soon as the request is taken, `token` for each piece of text, `metrics` after the last,
and `end` or `error` as the last of all: a stream without either was cut.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from engines.failure import EngineError, refused
from engines.protocol import Delta, End
from gateway import errors
from gateway.answers import event_of
from gateway.bodies import ChatBody, CompletionBody, parsed
from gateway.client import EventStream, body_of
from gateway.measures import Measures
from gateway.request import Watch, asked_of, id_of
from gateway.table import Role, Table


class Framing:
    """The path."""

    def __init__(self, table: Table, measures: Measures) -> None:
        self._table = table
        self._measures = measures

    async def stream(self, http: HttpRequest) -> Response:
        """A chat's body or a completion's, whichever of `messages` and `prompt` it has.

        A body that is wrong has an HTTP status; all that happens later is an event.
        """
        content = await body_of(http, self._table.config.max_body_mib)
        body = _either(content)
        if body.n > 1:
            raise refused("n: one answer at a time here", param="n")
        if isinstance(body, CompletionBody) and len(body.prompt) > 1:
            raise refused("prompt: one text at a time here", param="prompt")
        return EventStream(self._events(self._table.role(body.model), body, id_of(http)))

    async def _events(
        self, role: Role, body: ChatBody | CompletionBody, identity: str
    ) -> AsyncGenerator[str, None]:
        with Watch(self._measures, role) as watch:
            about = {"id": identity, "role": role.role, "engine": role.engine.name}
            yield event_of(about | {"created": int(time.time())}, "started")
            try:
                asked = (await asked_of(role, body, identity))[0]
                async with role.engine.stream(asked) as events:
                    async for event in events:
                        if isinstance(event, End):
                            watch.status = 200
                            yield event_of(_measured(event, watch), "metrics")
                            yield event_of({"finish_reason": event.finish_reason}, "end")
                        else:
                            watch.first()
                            yield event_of(_token(event), "token")
            except EngineError as error:
                watch.status = error.status
                retry = {"status": error.status, "retry": error.retry}
                yield event_of(errors.told(error) | retry, "error")


def _either(content: bytes) -> ChatBody | CompletionBody:
    try:
        chat = "messages" in json.loads(content)
    except (ValueError, TypeError, RecursionError):
        chat = True
    return parsed(ChatBody, content) if chat else parsed(CompletionBody, content)


def _token(event: Delta) -> dict[str, str]:
    return {"text": event.text} | ({"reasoning": event.reasoning} if event.reasoning else {})


def _measured(end: End, watch: Watch) -> dict[str, float | int | None]:
    """Seconds as the service saw them; counts of tokens are null where the engine has none."""
    made, first = end.usage.completion_tokens, watch.first_s
    after = watch.seconds - first if first is not None else 0.0
    return {
        "time_to_first_token_s": first,
        "seconds": watch.seconds,
        "prompt_tokens": end.usage.prompt_tokens,
        "completion_tokens": made,
        "tokens_per_second": (made - 1) / after if made and made > 1 and after > 0 else None,
    }
