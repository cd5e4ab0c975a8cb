"""`vllm serve MODEL …`."""

from __future__ import annotations

import argparse
import os
import sys
from argparse import Namespace

from sandbox.serving.listening import bind, end_on_signal, serve
from sandbox.vllm_standin import checkpoint, engine_args, placement
from sandbox.vllm_standin.engine import Engine, start

from . import VERSION, command_line
from .app import Server
from .settings import engine_arguments, settings

_COMMANDS = "{chat,complete,serve,launch,bench,collect-env,run-batch}"
_NO_RAY = (
    "Ray is not installed. Please install Ray with `pip install ray` to use it as the distributed "
    "executor backend."
)


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _engine(given: Namespace) -> Engine:
    """
    Raises:
        RuntimeError, ValueError, OSError, TypeError: as vLLM does; the cause is in the log.
    """
    arguments = engine_args.parse(engine_arguments(given))
    found = checkpoint.read(arguments.model)
    if arguments.executor == "ray":
        # vLLM ≥ 0.18 no longer depends on Ray, and its image has none.
        raise ValueError(_NO_RAY)
    # Unlike in Triton's EXPLICIT mode, several GPUs need no Ray here.
    gpus = placement.choose(arguments, explicit=False)
    return start(arguments, found, gpus, lambda text: _log(f"(EngineCore pid=2) {text}"))


def _serve(given: Namespace) -> int:
    told = vars(given)
    if told.get("enable_auto_tool_choice") and not told.get("tool_call_parser"):
        raise TypeError("Error: --enable-auto-tool-choice requires --tool-call-parser")
    host, port = told.get("host") or "0.0.0.0", told.get("port", 8000)  # noqa: S104
    sock = bind(host, port)
    _log(f"(APIServer pid=1) INFO vLLM API server version {VERSION}, model {given.model}")
    end_on_signal()
    engine = _engine(given)
    try:
        server = Server(settings(given, engine.max_model_len), engine, _log)
        _log(f"(APIServer pid=1) INFO Starting vLLM server on http://{host}:{port}")
        serve(
            server.app(),
            sock,
            server.beside,
            log_level=told.get("uvicorn_log_level", "info"),
            access_log=not told.get("disable_uvicorn_access_log", False),
            ssl_keyfile=told.get("ssl_keyfile"),
            ssl_certfile=told.get("ssl_certfile"),
        )
    finally:
        engine.shutdown()
    return 0


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    # Which release the arithmetic plays; its workers read it too.
    os.environ.setdefault("VLLM_VERSION", VERSION)
    if words[:1] in (["-v"], ["--version"]):
        print(VERSION)
        return 0
    if words[:1] != ["serve"]:
        parser = argparse.ArgumentParser(prog="vllm", usage=f"vllm [-h] [-v] {_COMMANDS} ...")
        parser.error(f"argument subparser: the stand-in plays `serve`, not {' '.join(words[:1])!r}")
    return _serve(command_line.parse(words[1:]))


if __name__ == "__main__":
    sys.exit(main())
