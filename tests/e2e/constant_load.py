"""Clients that ask roles all the time, and what became of each of their requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from tests.e2e.clients import Reached

PAUSE_S = 0.05
"""Between two requests of a client that was refused; one that was served asks again at once."""


@dataclass(frozen=True)
class Request:
    """One request."""

    role: str
    begun: float
    """Seconds of the monotonic clock."""
    ended: float
    status: int
    """0 where the connection failed."""
    said: str
    """What was wrong, empty for nothing."""
    retry_after: str = ""


@dataclass
class ConstantLoad:
    """What has become of all requests so far."""

    requests: list[Request] = field(default_factory=list)

    def of(self, role: str) -> list[Request]:
        """Those to a role."""
        return [each for each in self.requests if each.role == role]

    def served(self, role: str) -> int:
        """How many a role has answered."""
        return sum(not each.said for each in self.of(role))

    def failed(self, role: str) -> list[Request]:
        """Those that were not answered as they should be."""
        return [each for each in self.of(role) if each.said]

    def shut_s(self, role: str) -> float:
        """How long clients were refused: from the first to the last such request, in seconds."""
        failed = self.failed(role)
        return failed[-1].ended - failed[0].begun if failed else 0.0


@contextmanager
def constant_load(reached: Reached, roles: Sequence[str]) -> Iterator[ConstantLoad]:
    """For each role a client that streams and one that does not, until the block ends."""
    load, over = ConstantLoad(), threading.Event()

    def ask(role: str, stream: bool) -> None:
        with reached.http() as http:
            while not over.is_set():
                request = _asked(http, role, stream)
                load.requests.append(request)
                if request.said:
                    over.wait(PAUSE_S)

    clients = [
        threading.Thread(target=ask, args=(role, stream), daemon=True)
        for role in roles
        for stream in (False, True)
    ]
    for client in clients:
        client.start()
    try:
        yield load
    finally:
        over.set()
        for client in clients:
            client.join(70)


def _asked(http: httpx.Client, role: str, stream: bool) -> Request:
    messages = [{"role": "user", "content": "Who are you?"}]
    body = {"model": role, "messages": messages, "max_tokens": 12, "stream": stream}
    begun = time.monotonic()
    try:
        answer = http.post("/v1/chat/completions", json=body)
    except httpx.HTTPError as error:
        return Request(role, begun, time.monotonic(), 0, repr(error))
    whole = "data: [DONE]" in answer.text if stream else '"finish_reason"' in answer.text
    good = answer.status_code == 200 and whole and '"error"' not in answer.text
    return Request(
        role,
        begun,
        time.monotonic(),
        answer.status_code,
        "" if good else answer.text[-300:],
        answer.headers.get("retry-after", ""),
    )
