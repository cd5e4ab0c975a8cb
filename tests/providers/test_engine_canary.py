"""What a model has to do before its route opens, asked of engines behind a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from components.providers import engine_canary
from components.providers.engine_canary import canary
from engines import engine
from engines.protocol import Patience, Upstream
from tests.engines.fake_triton import VLLM, FakeTriton
from tests.engines.serving import serving

PATIENCE = Patience(first_s=2, between_s=2, doubt_s=0.3)


@dataclass
class Counting(FakeTriton):
    """A model whose long answers have no end, and that counts the tokens that it makes."""

    deaf: bool = False
    """Whether it goes on for a client that has gone."""
    made: int = 0
    active: str = ""
    """What it says of the requests that run, always."""
    counts: bool = True
    """Whether it tells of its tokens."""

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/metrics", self._counts), *super().app.routes])

    def _counts(self, _: Request) -> PlainTextResponse:
        self.made += 1 if self.deaf else 0
        counts = f'vllm:generation_tokens_total{{model="m"}} {self.made}\n' if self.counts else ""
        if self.active:
            labels = 'model="m",request_type="active"'
            counts += f"nv_trt_llm_request_metrics{{{labels}}} {self.active}\n"
        return PlainTextResponse(counts)

    async def _events(self, body: dict[str, Any]) -> AsyncIterator[str]:
        self.endless = '"max_tokens": 256' in body["sampling_parameters"]
        async for event in super()._events(body):
            self.made += 1
            yield event


def said_of(fake: FakeTriton, *, metered: bool = False, timeout_s: float = 3.0) -> str | None:
    """What the canary says."""

    async def look() -> str | None:
        async with serving(fake.app) as url, httpx.AsyncClient(trust_env=False) as http:
            at = Upstream(url, "m", f"{url}/metrics" if metered else "")
            return await canary(engine(VLLM, http, at, PATIENCE), timeout_s)

    return asyncio.run(look())


def test_a_model_that_answers_streams_and_stops_is_well() -> None:
    fake = Counting(VLLM)
    assert said_of(fake, metered=True) is None
    assert len(fake.seen) == 4
    assert fake.running == 0


def test_an_engine_without_metrics_is_taken_at_its_word() -> None:
    assert said_of(Counting(VLLM, deaf=True)) is None


def test_one_that_generates_for_nobody_does_not_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_canary, "STOPS_S", 0.3)
    monkeypatch.setattr(engine_canary, "LOOK_S", 0.05)
    why = said_of(Counting(VLLM, deaf=True), metered=True)
    assert why == "a stream cannot be cut off: it still generates 0 s later"


def test_a_gauge_that_stays_behind_is_not_believed_where_no_token_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_canary, "STOPS_S", 2.0)
    monkeypatch.setattr(engine_canary, "STILL_S", 0.3)
    assert said_of(Counting(VLLM, active="1"), metered=True) is None


@pytest.mark.parametrize("counts", [True, False])
def test_a_gauge_is_believed_where_tokens_are_made_or_not_told(
    monkeypatch: pytest.MonkeyPatch, counts: bool
) -> None:
    monkeypatch.setattr(engine_canary, "STOPS_S", 0.6)
    monkeypatch.setattr(engine_canary, "STILL_S", 0.2)
    why = said_of(Counting(VLLM, deaf=True, active="1", counts=counts), metered=True)
    assert why == "a stream cannot be cut off: it still generates 1 s later"


def test_one_that_fails_does_not_serve_and_its_own_words_say_why() -> None:
    why = said_of(Counting(VLLM, refuse=(500, {"error": "CUDA error: no kernel image"})))
    assert why == "it does not answer: CUDA error: no kernel image"


def test_one_that_answers_nothing_does_not_serve() -> None:
    assert said_of(Counting(VLLM, tokens=[" ", "\n"])) == "it does not answer: its answer is empty"


def test_one_whose_streams_break_does_not_serve() -> None:
    why = said_of(Counting(VLLM, break_after=1))
    assert why is not None
    assert why.startswith("it does not stream: ")


def test_one_that_hangs_is_not_waited_for_beyond_the_bound() -> None:
    why = said_of(Counting(VLLM, stall=True), timeout_s=0.5)
    assert why == "it does not answer: nothing within 0 s"
