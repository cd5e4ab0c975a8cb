"""Start Triton, look at its models once, then serve."""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import Namespace
from pathlib import Path

import uvicorn

from sandbox.serving.listening import bind, end_on_signal, serve

from . import command_line
from .app import Frontend
from .child import Child
from .models import Models
from .question import Prompting


def _frontend(given: Namespace, child: Child, restricted: dict[str, tuple[str, str]]) -> Frontend:
    models = Models(child, given.backend, given.model_control_mode == "explicit")
    prompting = Prompting(
        Path(given.tokenizer) if given.tokenizer else None,
        given.chat_template,
        given.default_max_tokens,
        given.tool_call_parser,
    )
    return Frontend(child, models, prompting, restricted, given.http_max_input_size)


def _check(given: Namespace) -> dict[str, tuple[str, str]]:
    """
    Raises:
        ValueError: what the real one finds wrong after argparse is content.
    """
    if given.load_model and given.model_control_mode != "explicit":
        raise ValueError("--load-model requires --model-control-mode=explicit")
    if "*" in given.load_model and len(given.load_model) > 1:
        raise ValueError("--load-model '*' cannot be combined with other models")
    return command_line.restrictions(given.openai_restricted_api)


def main(words: list[str] | None = None) -> int:
    given = command_line.parser().parse_args(words)
    try:
        restricted = _check(given)
    except ValueError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    end_on_signal()
    child = Child(given)
    try:
        if not child.wait_started():
            print("Error: Internal - failed to load all models", file=sys.stderr)
            return 1
        frontend = _frontend(given, child, restricted)

        async def beside(server: uvicorn.Server) -> None:
            # Triton is part of the real one's process: they end together.
            while child.process.poll() is None:  # noqa: ASYNC110 (a process that others wait for)
                await asyncio.sleep(0.2)
            server.should_exit = True

        sock = bind(given.host, given.openai_port)
        serve(
            frontend.app(),
            sock,
            beside,
            before=frontend.models.look,
            # Triton waits for connections that are open, idle ones too.
            after=child.client.aclose,
            log_level=given.uvicorn_log_level,
        )
        return 0 if child.process.poll() is None else 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child.stop()


if __name__ == "__main__":
    sys.exit(main())
