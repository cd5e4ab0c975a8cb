"""A request on its way: its role, what its engine is asked, and what is counted of it."""

from __future__ import annotations

import re
import time
import uuid
from dataclasses import dataclass, field

from starlette.requests import Request as HttpRequest

from engines.failure import refused
from engines.protocol import Request
from gateway.bodies import ChatBody, CompletionBody, max_tokens_of
from gateway.choices import requests
from gateway.measures import Measures
from gateway.table import Role

_SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")


def id_of(http: HttpRequest) -> str:
    """The caller's `X-Request-Id` where it is sane, else a new one."""
    given = http.headers.get("x-request-id", "")
    return given if _SANE.fullmatch(given) else uuid.uuid4().hex


async def asked_of(role: Role, body: ChatBody | CompletionBody, identity: str) -> list[Request]:
    """What the role's engine is to answer: `n` requests for each prompt.

    Raises:
        EngineError: the role cannot answer this.
    """
    limits = role.limits
    # A caller may use its id twice; vLLM ends a request whose id is another's.
    identity = f"{identity}-{uuid.uuid4().hex[:8]}"
    if isinstance(body, CompletionBody):
        # OpenAI's own default for completions, and that of every engine that has one.
        sampling = body.sampling(max_tokens_of(body, 16, limits.max_tokens))
        prompts = [Request(prompt=text, sampling=sampling, id=identity) for text in body.prompt]
        return requests(prompts, body.n)
    sampling = body.sampling(max_tokens_of(body, limits.default_max_tokens, limits.max_tokens))
    messages = [message.plain() for message in body.messages]
    if role.engine.renders_chat:
        if body.chat_template_kwargs:
            raise refused(
                "chat_template_kwargs: this role's engine renders chats itself",
                param="chat_template_kwargs",
            )
        chat = Request(messages=tuple(messages), sampling=sampling, id=identity)
        return requests([chat], body.n)
    if role.template is None:
        raise refused(
            "this role takes no chats: its route names no weights directory, so that its chat "
            "template is not known. /v1/completions works.",
            param="messages",
            code="no_chat_template",
        )
    prompt = await role.template.render(messages, body.chat_template_kwargs)
    return requests([Request(prompt=prompt, sampling=sampling, id=identity)], body.n)


@dataclass
class Watch:
    """Counts one request, whatever becomes of it."""

    measures: Measures
    role: Role
    status: int = 499
    """What was answered; 499 stays where the client went first, nginx's own number for that."""
    began: float = field(default_factory=time.perf_counter)
    first_s: float | None = None

    def __enter__(self) -> Watch:
        self.measures.running.labels(*self._labels).inc()
        return self

    def first(self) -> None:
        """Text has come."""
        if self.first_s is None:
            self.first_s = time.perf_counter() - self.began
            self.measures.first_token.labels(*self._labels).observe(self.first_s)

    @property
    def seconds(self) -> float:
        """Since the request came."""
        return time.perf_counter() - self.began

    def __exit__(self, *_: object) -> None:
        self.measures.running.labels(*self._labels).dec()
        self.measures.requests.labels(*self._labels, str(self.status)).inc()
        self.measures.duration.labels(*self._labels).observe(self.seconds)

    @property
    def _labels(self) -> tuple[str, str]:
        return self.role.name, self.role.engine.name
