"""The frontend's flags (26.07): tritonserver's own do not exist here."""

from __future__ import annotations

import argparse

GROUPS = ("inference", "model-repository", "metrics", "health")
_LEVELS = ("critical", "debug", "error", "info", "trace", "warning")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="main.py", description="Triton OpenAI-Compatible frontend")
    triton = made.add_argument_group("Triton Inference Server")
    triton.add_argument("--model-repository", required=True)
    triton.add_argument("--tokenizer")
    triton.add_argument("--backend", choices=("vllm", "tensorrtllm"))
    triton.add_argument("--lora-separator")
    triton.add_argument("--tritonserver-log-verbose-level", type=int, default=0)
    triton.add_argument("--model-control-mode", choices=("none", "explicit"), default="none")
    triton.add_argument("--load-model", action="append", default=[])
    openai = made.add_argument_group("Triton OpenAI-Compatible Frontend")
    openai.add_argument("--host", default="0.0.0.0")  # noqa: S104 (the real default)
    openai.add_argument("--openai-port", type=int, default=9000)
    openai.add_argument("--uvicorn-log-level", choices=_LEVELS, default="info")
    openai.add_argument("--default-max-tokens", type=int, default=16)
    openai.add_argument("--tool-call-parser")
    openai.add_argument("--chat-template")
    openai.add_argument("--max-tool-call-parse-bytes", type=int, default=131072)
    openai.add_argument("--http-max-input-size", type=int, default=64 * 2**20)
    words = ("GROUPS", "KEY", "VALUE")
    openai.add_argument(
        "--openai-restricted-api", nargs=3, metavar=words, action="append", default=[]
    )
    kserve = made.add_argument_group("Triton KServe Frontend")
    kserve.add_argument("--enable-kserve-frontends", action="store_true")
    kserve.add_argument("--kserve-http-port", type=int, default=8000)
    kserve.add_argument("--kserve-grpc-port", type=int, default=8001)
    return made


def restrictions(given: list[list[str]]) -> dict[str, tuple[str, str]]:
    """Group → header and value.

    Raises:
        ValueError: no such group, or a group named twice.
    """
    found: dict[str, tuple[str, str]] = {}
    for groups, header, value in given:
        for group in groups.split(","):
            if group not in GROUPS:
                raise ValueError(f"Unknown API '{group}'. Available APIs: {', '.join(GROUPS)}")
            if group in found:
                raise ValueError(f"restricted api '{group}' can not be specified in multiple")
            found[group] = (header, value)
    return found
