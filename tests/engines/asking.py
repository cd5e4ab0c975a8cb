"""Asks an adapter in a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from engines import engine
from engines.protocol import Delta, End, Engine, Patience, Request, Sampling, Upstream
from tests.engines.fake_openai import FRONTEND, FRONTEND_BATCHER, TRTLLM, FakeOpenAi
from tests.engines.fake_openai import VLLM as VLLM_SERVE
from tests.engines.fake_triton import BATCHER, LLMAPI, VLLM, FakeTriton
from tests.engines.serving import serving

NATIVE = [VLLM, LLMAPI, BATCHER]
OPENAI = [VLLM_SERVE, TRTLLM, FRONTEND, FRONTEND_BATCHER]
FRONTENDS = [FRONTEND, FRONTEND_BATCHER]
ALL = NATIVE + OPENAI
Fake = FakeTriton | FakeOpenAi


def fake(kind: str, **told: Any) -> Fake:
    """A server of that kind."""
    return FakeTriton(kind, **told) if kind in NATIVE else FakeOpenAi(kind, **told)


@asynccontextmanager
async def adapter(
    server: Fake, *, patience: Patience | None = None, model: str = "m", key: str = ""
) -> AsyncIterator[Engine]:
    """The adapter of a served fake, over a real loopback connection."""
    async with serving(server.app) as base, httpx.AsyncClient(trust_env=False) as http:
        upstream = Upstream(base, model, metrics_url=f"{base}/metrics", key=key)
        yield engine(server.kind, http, upstream, patience)


@asynccontextmanager
async def told(server: Fake, *, model: str = "m") -> AsyncIterator[Engine]:
    """The adapter of a fake in the same process: quicker, where no connection matters."""
    transport = httpx.ASGITransport(app=server.app)
    async with httpx.AsyncClient(transport=transport) as http:
        upstream = Upstream("http://engine", model, metrics_url="http://engine/metrics")
        yield engine(server.kind, http, upstream)


def asked(prompt: str = "Say hello", **sampling: Any) -> Request:
    """A prompt with this sampling."""
    return Request(prompt=prompt, sampling=Sampling(**sampling), id="asked-1")


async def collected(engine: Engine, request: Request) -> tuple[list[str], End]:
    """A whole stream: the deltas' texts and the end."""
    texts: list[str] = []
    async with engine.stream(request) as stream:
        async for event in stream:
            if isinstance(event, Delta):
                texts.append(event.text)
            else:
                return texts, event
    raise AssertionError("the stream had no end")
