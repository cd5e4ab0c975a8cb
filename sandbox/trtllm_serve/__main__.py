"""`trtllm-serve MODEL …`."""

from __future__ import annotations

import os
import sys
from typing import Any

from sandbox.serving.listening import bind, end_on_signal, serve
from sandbox.trtllm_standin.loading import Wanted, load

from .app import Server
from .command_line import command
from .settings import settings


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _serve(options: dict[str, Any]) -> None:
    """
    Raises:
        RuntimeError: the port is taken, or the engine did not come up.
        ValueError, OSError: no GPUs, or no model there.
    """
    wanted = settings(options)
    host, port = options["host"], options["port"]
    try:
        sock = bind(host, port)
    except OSError as error:
        raise RuntimeError(f"Failed to bind socket to {host}:{port}: {error}") from error
    end_on_signal()
    engine = load(
        Wanted(
            str(wanted.model),
            wanted.tp,
            wanted.pp,
            wanted.memory_fraction,
            wanted.kv_tokens,
            wanted.max_seq_len,
        ),
        _log,
    )
    try:
        server = Server(wanted, engine, _log)
        serve(server.app(), sock, server.beside, log_level="info")
    finally:
        engine.shutdown()


def main() -> None:
    # Which vLLM the shared arithmetic plays matters to its defaults only.
    os.environ.setdefault("VLLM_VERSION", "0.32.0")
    command(_serve).main(prog_name="trtllm-serve")


if __name__ == "__main__":
    main()
