"""Engines by name, each behind the same protocol.

Another one is a file with a class, a line here, and its test.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx

from engines.protocol import Engine, Patience, Upstream
from engines.triton_batcher import TritonBatcher
from engines.triton_llmapi import TritonLlmapi
from engines.triton_native import TritonNative
from engines.triton_openai import TritonOpenai
from engines.triton_openai_batcher import TritonOpenaiBatcher
from engines.triton_vllm import TritonVllm
from engines.trtllm_serve import TrtllmServe
from engines.vllm_serve import VllmServe

NATIVE: dict[str, type[TritonNative]] = {
    "triton-vllm": TritonVllm,
    "triton-llmapi": TritonLlmapi,
    "triton-batcher": TritonBatcher,
}
"""Those that are models in a Triton server."""
KNOWN: dict[str, Callable[[httpx.AsyncClient, Upstream, Patience | None], Engine]] = {
    **NATIVE,
    "triton-openai": TritonOpenai,
    "triton-openai-batcher": TritonOpenaiBatcher,
    "vllm": VllmServe,
    "trtllm-serve": TrtllmServe,
}


def engine(
    name: str, http: httpx.AsyncClient, upstream: Upstream, patience: Patience | None = None
) -> Engine:
    """The adapter for an engine; `http` may serve many of them and stays the caller's to close."""
    return KNOWN[name](http, upstream, patience)


def native(name: str, http: httpx.AsyncClient, upstream: Upstream) -> TritonNative:
    """The adapter for a model in a Triton server, which tells what it would post."""
    return NATIVE[name](http, upstream)
