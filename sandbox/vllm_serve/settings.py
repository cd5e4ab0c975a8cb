"""What the command line asks of the server, as against the engine."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.serving.chat_prompt import find_template
from sandbox.vllm_standin.argument_names import ENGINE_ARGUMENTS

DEFAULT_RUNNING = 256
"""Requests that run at a time, unless --max-num-seqs says otherwise (vLLM's on an L4)."""


@dataclass(frozen=True)
class Settings:
    """The server's own; `max_model_len` (tokens) is known once the engine is up."""

    model: Path
    names: list[str]
    """The first is carried by every answer and metric."""
    keys: frozenset[str]
    max_model_len: int
    max_running: int
    template: str | None
    always_usage: bool
    usage_details: bool
    request_ids: bool
    log_stats: bool
    tools: bool
    role: str
    root_path: str


def settings(given: Namespace, max_model_len: int) -> Settings:
    told = vars(given)
    # `--api-key` and the variable exclude each other: the flag wins.
    keys = told.get("api_key") or [key for key in (os.environ.get("VLLM_API_KEY"),) if key]
    model = Path(given.model)
    return Settings(
        model=model,
        names=told.get("served_model_name") or [given.model],
        keys=frozenset(keys),
        max_model_len=max_model_len,
        max_running=told.get("max_num_seqs", DEFAULT_RUNNING),
        template=find_template(model, told.get("chat_template")),
        always_usage=told.get("enable_force_include_usage", False),
        usage_details=told.get("enable_prompt_tokens_details", False),
        request_ids=told.get("enable_request_id_headers", False),
        log_stats=not told.get("disable_log_stats", False),
        tools=told.get("enable_auto_tool_choice", False),
        role=told.get("response_role", "assistant"),
        root_path=told.get("root_path", ""),
    )


def engine_arguments(given: Namespace) -> dict[str, Any]:
    """Those of the flags that are the engine's."""
    return {name: value for name, value in vars(given).items() if name in ENGINE_ARGUMENTS}
