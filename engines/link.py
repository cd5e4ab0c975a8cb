"""HTTP to one engine: answers, events, and every failure as an EngineError."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx

from engines.error_body import error_of, is_error, parsed
from engines.failure import EngineError, broken, of_transport
from engines.protocol import Health, Patience, Upstream
from engines.sse import SseReader, TooLargeError

LARGEST_ANSWER = 64 * 2**20
"""Bytes of an answer that is read whole."""


class Link:
    """Calls of one engine over a client that may serve many. Nothing is tried again here."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        upstream: Upstream,
        patience: Patience,
        key_header: str = "",
    ) -> None:
        """`key_header` takes the engine's key as it is; without one, the key is a bearer token."""
        self._http = http
        self._upstream = upstream
        self._patience = patience
        self._base = upstream.base_url.rstrip("/")
        named = key_header or "Authorization"
        value = upstream.key if key_header else f"Bearer {upstream.key}"
        self._headers = {named: value} if upstream.key else {}
        # How long an event may take is the Stream's to bound: it knows the first from the others.
        self._timeout = httpx.Timeout(patience.whole_s, connect=patience.connect_s)

    async def get(self, path: str) -> httpx.Response:
        """A look at something the engine has at hand; any status is an answer."""
        url = path if path.startswith("http") else self._base + path
        try:
            return await self._http.get(
                url, headers=self._headers, timeout=self._patience.look_s, follow_redirects=False
            )
        except httpx.HTTPError as error:
            raise of_transport(error) from error

    async def looks_well(self, path: str) -> Health:
        """Whether `path` answers 200; where it does not, in the engine's words."""
        try:
            answer = await self.get(path)
        except EngineError as error:
            return Health(False, error.message, late=error.late)
        if answer.status_code == 200:
            return Health(True)
        said = " ".join(answer.text.split())[:200]
        return Health(False, f"{path} answers {answer.status_code}{said and f': {said}'}")

    async def ask(self, path: str, body: Mapping[str, Any], request_id: str) -> dict[str, Any]:
        """One answer, read whole. A 200 that holds an error is one."""
        try:
            async with self._http.stream(
                "POST",
                self._base + path,
                json=body,
                headers=self._with_id(request_id),
                timeout=self._timeout,
            ) as answer:
                content = await _whole(answer)
        except httpx.HTTPError as error:
            raise of_transport(error) from error
        said = parsed(content)
        if answer.status_code != 200 or is_error(said):
            raise error_of(answer.status_code if answer.status_code != 200 else 500, said)
        if not isinstance(said, dict):
            raise broken("the engine's answer is not a JSON object")
        return said

    async def events(
        self, path: str, body: Mapping[str, Any], request_id: str
    ) -> AsyncGenerator[str, None]:
        """The data of each server-sent event, until the answer ends as HTTP says it should.

        Raises:
            EngineError: also for a connection that breaks before its end.
        """
        reader = SseReader()
        try:
            async with self._http.stream(
                "POST",
                self._base + path,
                json=body,
                headers=self._with_id(request_id),
                timeout=self._timeout,
            ) as answer:
                if answer.status_code != 200:
                    raise error_of(answer.status_code, _first_event(await _whole(answer)))
                if "text/event-stream" not in answer.headers.get("content-type", ""):
                    said = parsed(await _whole(answer))
                    raise error_of(500, said) if is_error(said) else broken("not an event stream")
                async for arrived in answer.aiter_bytes():
                    for data in reader.feed(arrived):
                        yield data
        except TooLargeError:
            raise broken("an event of the engine has no end") from None
        except httpx.HTTPError as error:
            raise of_transport(error) from error

    def _with_id(self, request_id: str) -> dict[str, str]:
        return self._headers | ({"X-Request-Id": request_id} if request_id else {})


async def _whole(answer: httpx.Response) -> bytes:
    pieces, size = [], 0
    async for piece in answer.aiter_bytes():
        size += len(piece)
        if size > LARGEST_ANSWER:
            raise broken("the engine's answer has no end")
        pieces.append(piece)
    return b"".join(pieces)


def _first_event(content: bytes) -> object:
    """An error's body, which Triton frames as an event on `generate_stream`."""
    events = SseReader().feed(content + b"\n\n") if content.startswith(b"data:") else []
    return parsed(events[0] if events else content)
