"""One request from first token to last, cancelled or not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

from . import answers, sampling
from .engine import DEAD, Engine
from .metrics import Metrics
from .request import Request
from .version import TOKEN_SECONDS

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
_CANCELLED = "Request was cancelled"


def _begin(engine: Engine, request: Request, log: Callable[[str], None]) -> sampling.Sampling:
    engine.meet_a_request()
    if not engine.alive:
        raise RuntimeError(DEAD)
    wanted = sampling.parse(request.parameters, log)
    if wanted is None:
        # NVIDIA's backend goes on with None, and this is what its client sees.
        raise AttributeError("'NoneType' object has no attribute 'lora_name'")
    length = answers.tokens_of(request.prompt)
    if length >= engine.max_model_len:
        raise ValueError(
            f"The decoder prompt (length {length}) is longer than the maximum model length of "
            f"{engine.max_model_len}. Make sure that `max_model_len` is no smaller than the number "
            "of text tokens."
        )
    return wanted


async def generate(
    engine: Engine, raw: Any, sender: Any, metrics: Metrics, log: Callable[[str], None]
) -> None:
    """Answer `raw` through `sender`, a token at a time; stops when the client has gone."""
    request = Request.read(raw)
    wanted = _begin(engine, request, log)
    name, prompt = engine.checkpoint.name, request.prompt
    mute = engine.is_mute
    outputs = [answers.begin(name, prompt, wanted, i, mute=mute) for i in range(wanted.n)]
    length = answers.tokens_of(prompt)
    metrics.count("vllm:prompt_tokens_total", length)
    started, first = time.monotonic(), True
    while not all(output.finish_reason for output in outputs):
        await asyncio.sleep(TOKEN_SECONDS)
        if not engine.alive:
            raise RuntimeError(DEAD)
        if sender.is_cancelled():
            log("[vllm] Cancelling the request")
            _end_cancelled(request, sender, outputs)
            log("[vllm] Successfully cancelled the request")
            return
        before = sum(output.tokens for output in outputs)
        for output in outputs:
            answers.advance(output, wanted, engine.max_model_len - length)
        metrics.count("vllm:generation_tokens_total", sum(o.tokens for o in outputs) - before)
        if first:
            metrics.observe("vllm:time_to_first_token_seconds", time.monotonic() - started)
            first = False
        if request.stream:
            last = all(output.finish_reason for output in outputs)
            sender.send(request.response(outputs), flags=FINAL if last else 0)
    if not request.stream:
        sender.send(request.response(outputs), flags=FINAL)
    _observe(metrics, length, outputs, time.monotonic() - started)


def _end_cancelled(request: Request, sender: Any, outputs: list[answers.Sequence]) -> None:
    if request.stream:
        error = pb_utils.TritonError(_CANCELLED, pb_utils.TritonError.CANCELLED)
        sender.send(pb_utils.InferenceResponse(error=error), flags=FINAL)
    else:
        sender.send(request.response(outputs), flags=FINAL)


def _observe(
    metrics: Metrics, length: int, outputs: list[answers.Sequence], seconds: float
) -> None:
    tokens = sum(output.tokens for output in outputs)
    metrics.observe("vllm:e2e_request_latency_seconds", seconds)
    metrics.observe("vllm:time_per_output_token_seconds", seconds / max(1, tokens))
    metrics.observe("vllm:request_prompt_tokens", length)
    metrics.observe("vllm:request_generation_tokens", tokens)
    metrics.observe("vllm:request_params_n", len(outputs))
