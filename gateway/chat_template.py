"""A model's chat template, rendered in a process of its own that can be ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engines.failure import EngineError, refused

PROGRAM = Path(__file__).with_name("template_program.py")
START_S = 20.0
"""Bound on the start, which may read a tokenizer.json of 30 MB."""
RENDER_S = 2.0
"""Bound on one rendering: a long conversation takes some milliseconds."""
LONGEST_LINE = 32 * 2**20


class ChatTemplate:
    """Of one weights directory. Its process starts with the first chat and is used again."""

    def __init__(self, weights: str, *, render_s: float = RENDER_S) -> None:
        self.weights = weights
        self._render_s = render_s
        self._process: asyncio.subprocess.Process | None = None
        self._one_at_a_time = asyncio.Lock()
        self._retired = False

    async def render(
        self, messages: Sequence[Mapping[str, Any]], more: Mapping[str, Any] | None = None
    ) -> str:
        """The prompt.

        Raises:
            EngineError: there is no template (400), it refuses these messages (400, in its own
                words), or it fails or does not end (500).
        """
        asked = {**(more or {}), "messages": list(messages)}
        async with self._one_at_a_time:
            try:
                answer = await self._ask(asked)
            except BaseException:
                # Also where the client has gone: an answer that nobody read would be the next's.
                await self._stop()
                raise
            if self._retired:
                await self._stop()
        return _text(answer)

    async def retire(self) -> None:
        """No new request will come: end the process once those that wait are through."""
        self._retired = True
        async with self._one_at_a_time:
            await self._stop()

    async def _ask(self, asked: dict[str, Any]) -> dict[str, str]:
        if self._process is None or self._process.returncode is not None:
            await self._start()
        process = self._process
        assert process is not None and process.stdin is not None  # noqa: S101, PT018
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        try:
            async with asyncio.timeout(self._render_s):
                await process.stdin.drain()
                return await self._line()
        except TimeoutError:
            raise _broken(f"took longer than {self._render_s:g} s") from None
        except ConnectionError:
            raise _broken("ended its process") from None

    async def _start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(PROGRAM),
            self.weights,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LONGEST_LINE,
            env={"LANG": "C.UTF-8"},
        )
        try:
            async with asyncio.timeout(START_S):
                said = await self._line()
        except TimeoutError:
            raise _broken(f"was not read within {START_S:g} s") from None
        if "error" in said:
            _text(said)

    async def _line(self) -> dict[str, str]:
        assert self._process is not None and self._process.stdout is not None  # noqa: S101, PT018
        try:
            line = await self._process.stdout.readline()
            found: dict[str, str] = json.loads(line)
        except ValueError:
            raise _broken("ended its process: out of memory, perhaps") from None
        return found

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _text(answer: Mapping[str, str]) -> str:
    if "error" not in answer:
        return answer["text"]
    kind, reason = answer["kind"], answer["error"]
    if kind == "missing":
        raise refused(
            f"this role takes no chats: {reason}. /v1/completions works.",
            param="messages",
            code="no_chat_template",
        )
    if kind == "refused":
        raise refused(f"the model's chat template refuses: {reason}", param="messages")
    raise _broken(f"failed: {reason}")


def _broken(what: str) -> EngineError:
    message = f"the model's chat template {what}"
    return EngineError(message, status=500, retry=False, code="chat_template_failed")
