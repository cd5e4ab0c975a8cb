"""The canary: what a model has to do before its route opens, whatever engine serves it.

A server's own word is not enough: Triton calls a model READY whose process is dead, and
trtllm-serve's /health of 2025 answers 200 in any case.
"""

from __future__ import annotations

import asyncio

from engines.failure import EngineError
from engines.protocol import Delta, Engine, Request, Sampling

PROMPT = "Say a few words about the sea."
FEW, MANY = 4, 256
"""Tokens of an answer that is read to its end, and of one that is cut off."""


async def canary(engine: Engine, timeout_s: float) -> str | None:
    """Answer, stream, cancel, answer again; why it fails, or None.

    Args:
        engine: the model.
        timeout_s: bound on each of the steps, in seconds.
    """
    steps = (
        ("it does not answer", _answers),
        ("it does not stream", _streams),
        ("a stream cannot be cut off", _is_cut_off),
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


async def _is_cut_off(engine: Engine) -> str | None:
    stream = engine.stream(_asking(MANY))
    try:
        async for event in stream:
            if isinstance(event, Delta) and event.text:
                break
        else:
            return "it ended before its first word"
    finally:
        await engine.cancel(stream)
    return None


def _asking(tokens: int) -> Request:
    """A prompt, not messages: a base model has no chat template and is none the worse for it."""
    return Request(prompt=PROMPT, sampling=Sampling(max_tokens=tokens, temperature=0.0, seed=0))
