"""The canary: what a model has to do before its route opens, whatever engine serves it.

Answer, stream, stop when its client goes, answer again. That it takes no more memory than planned
is looked at beside (`gpu_memory.beyond_claim`).

A server's own word is not enough: Triton calls a model READY whose process is dead, and
trtllm-serve's /health of 2025 answers 200 in any case.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from engines.failure import EngineError
from engines.metrics import Metrics
from engines.protocol import Delta, Engine, Request, Sampling, Stops

PROMPT = "Say a few words about the sea."
FEW, MANY = 4, 256
"""Tokens of an answer that is read to its end, and of one that is cut off."""
STOPS_S = 5.0
"""How long an engine may go on generating for a client that has gone, in seconds; trtllm-serve
looks only once a second."""
LOOK_S = 0.2
"""Pause between two looks at its metrics: one without a token in it has ended, in seconds."""
STILL_S = 1.0
"""As that, where its gauge says that a request still runs: vLLM brings the gauge up to date in its
next step only, so after the last request was cut off it may stay (vLLM #22545, #29928)."""
Meter = Callable[[], Awaitable[Metrics]]


async def canary(
    engine: Engine,
    timeout_s: float,
    meter: Meter | None = None,
    *,
    alone: bool = True,
    answered: asyncio.Event | None = None,
) -> str | None:
    """Answer, stream, cancel, answer again; why it fails, or None.

    Args:
        engine: the model.
        timeout_s: bound on each of the steps, in seconds.
        meter: its counts, where the engine cannot ask for them itself.
        alone: whether nobody else can be using it, so that its metrics tell of the canary alone.
        answered: set once it has answered for the first time, from when on it holds its memory.
    """

    async def is_cut_off(engine: Engine) -> str | None:
        why, stops = await _cut_off(engine)
        if why is None and alone and stops is not Stops.RUNS_ON:
            why = await _goes_on(meter or engine.metrics)
        return why

    steps = (
        ("it does not answer", _answers),
        ("it does not stream", _streams),
        ("a stream cannot be cut off", is_cut_off),
        ("it does not answer after a stream was cut off", _answers),
    )
    for what, step in steps:
        try:
            async with asyncio.timeout(timeout_s):
                why = await step(engine)
        except TimeoutError:
            why = f"nothing within {timeout_s:.0f} s"
        except EngineError as error:
            why = error.message
        if why is not None:
            return f"{what}: {why}"
        if answered is not None:
            answered.set()
    return None


async def _answers(engine: Engine) -> str | None:
    answer = await engine.complete(_asking(FEW))
    return None if answer.text.strip() else "its answer is empty"


async def _streams(engine: Engine) -> str | None:
    stream = engine.stream(_asking(FEW))
    try:
        pieces = [event.text async for event in stream if isinstance(event, Delta)]
    finally:
        await stream.aclose()
    return None if "".join(pieces).strip() else "its stream is empty"


async def _cut_off(engine: Engine) -> tuple[str | None, Stops]:
    stream = engine.stream(_asking(MANY))
    why: str | None = "it ended before its first word"
    try:
        async for event in stream:
            if isinstance(event, Delta) and event.text:
                why = None
                break
    finally:
        stops = await engine.cancel(stream)
    return why, stops


async def _goes_on(meter: Meter) -> str | None:
    """Whether it generates for nobody, as far as its metrics tell: requests that run, and tokens
    that are counted. An engine without either is taken at its word."""
    give_up = time.monotonic() + STOPS_S
    before, since = None, time.monotonic()
    while True:
        try:
            now = await meter()
        except EngineError:
            return None
        running, made = now.requests_running, now.generation_tokens_total
        if running == 0 or (running is None and made is None):
            return None
        if made != before:
            before, since = made, time.monotonic()
        elif made is not None and time.monotonic() - since >= (STILL_S if running else 0):
            return None
        if time.monotonic() > give_up:
            return f"it still generates {STOPS_S:.0f} s later"
        await asyncio.sleep(LOOK_S)


def _asking(tokens: int) -> Request:
    """A prompt, not messages: a base model has no chat template and is none the worse for it."""
    return Request(prompt=PROMPT, sampling=Sampling(max_tokens=tokens, temperature=0.0, seed=0))
