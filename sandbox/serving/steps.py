"""Generation in steps, as a real engine does it: each step is one token for every running request.

A client that leaves has its request released, and the next step no longer knows of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from sandbox.vllm_standin import answers
from sandbox.vllm_standin.engine import DEAD
from sandbox.vllm_standin.sampling import Sampling
from sandbox.vllm_standin.version import TOKEN_SECONDS


class EngineDeadError(RuntimeError):
    """The engine's process is gone: nothing will be answered any more."""

    def __init__(self, words: str = DEAD) -> None:
        super().__init__(words)


class Living(Protocol):
    """What steps need of an engine."""

    @property
    def alive(self) -> bool:
        """Whether all its processes run."""


@dataclass(eq=False)
class Generation:
    """One request between its arrival and its last token; times are monotonic seconds."""

    outputs: list[answers.Sequence]
    sampling: Sampling
    prompt_tokens: int
    room: int
    """Output tokens that the context length leaves."""
    arrived: float = field(default_factory=time.monotonic)
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    aborted: bool = False
    failure: Exception | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def finished(self) -> bool:
        """Whether every output has ended by itself."""
        return all(output.finish_reason for output in self.outputs)

    @property
    def output_tokens(self) -> int:
        """Of all outputs together."""
        return sum(output.tokens for output in self.outputs)

    def step(self) -> int:
        """Advance every unfinished output; returns the tokens that were made."""
        before = self.output_tokens
        for output in self.outputs:
            answers.advance(output, self.sampling, self.room)
        return self.output_tokens - before

    def wake(self) -> None:
        """Tell whoever reads that something changed."""
        self._changed.set()

    async def changes(self) -> AsyncIterator[None]:
        """A turn for each step (for several, if the reader is slow) until the last.

        Raises:
            EngineDeadError: the engine died meanwhile.
        """
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self.failure:
                raise self.failure
            yield
            if self.finished or self.aborted:
                return


class Listener(Protocol):
    """Hears what becomes of requests, to count it."""

    def stepped(self, generation: Generation, tokens: int) -> None:
        """It has `tokens` more."""

    def ended(self, generation: Generation) -> None:
        """It has finished, was aborted or failed."""

    def iterated(self, running: int, waiting: int, tokens: int) -> None:
        """A step is over: what took part in it, and the tokens it made."""


class Stepper:
    """The engine's loop: `most` requests run at a time, the others wait."""

    def __init__(self, engine: Living, most: int, listener: Listener, dead: str = DEAD) -> None:
        self._engine, self._most, self._listener = engine, most, listener
        self._dead = dead
        self.waiting: list[Generation] = []
        self.running: list[Generation] = []
        self._work = asyncio.Event()

    def submit(self, generation: Generation) -> None:
        """Queue it.

        Raises:
            EngineDeadError: there is no engine any more.
        """
        if not self._engine.alive:
            raise EngineDeadError(self._dead)
        self.waiting.append(generation)
        self._work.set()

    def release(self, generation: Generation) -> None:
        """Forget it: a no-op once it has ended, else an abort."""
        for queue in (self.waiting, self.running):
            if generation in queue:
                queue.remove(generation)
                generation.aborted = True
                generation.wake()
                self._listener.ended(generation)

    async def run(self) -> None:
        """Step for ever; cancel it to end."""
        while True:
            if not self.waiting and not self.running:
                self._work.clear()
                await self._work.wait()
            await asyncio.sleep(TOKEN_SECONDS)
            if not self._engine.alive:
                self._fail([*self.waiting, *self.running])
                continue
            self._step()

    def _step(self) -> None:
        admitted = self.waiting[: self._most - len(self.running)]
        del self.waiting[: len(admitted)]
        now = time.monotonic()
        for generation in admitted:
            generation.scheduled = now
        self.running += admitted
        total = 0
        for generation in self.running:
            tokens = generation.step()
            generation.first_token = generation.first_token or now
            self._listener.stepped(generation, tokens)
            generation.last_token = now
            total += tokens
        self._listener.iterated(len(self.running), len(self.waiting), total)
        ended = [generation for generation in self.running if generation.finished]
        self.running = [generation for generation in self.running if not generation.finished]
        for generation in ended:
            self._listener.ended(generation)
        for generation in [*self.running, *ended]:
            generation.wake()

    def _fail(self, all_of_them: Iterable[Generation]) -> None:
        for generation in all_of_them:
            generation.failure = EngineDeadError(self._dead)
            self._listener.ended(generation)
            generation.wake()
        self.waiting.clear()
        self.running.clear()


class Visible:
    """What of a growing output a client may see: the start of a stop string is held back."""

    def __init__(self, output: answers.Sequence, sampling: Sampling) -> None:
        self._output = output
        longest = max((len(stop) for stop in sampling.stop), default=0)
        self._held_back = 0 if sampling.include_stop else max(0, longest - 1)
        self._sent = self._tokens = 0
        self._ended = False

    def take(self) -> tuple[str, int, str | None] | None:
        """New text, new tokens and the reason to end; None where nothing is new."""
        if self._ended or self._output.tokens == self._tokens:
            return None
        text, reason = self._output.text, self._output.finish_reason
        upto = len(text) if reason else max(self._sent, len(text) - self._held_back)
        fresh, self._sent = text[self._sent : upto], max(self._sent, upto)
        tokens, self._tokens = self._output.tokens - self._tokens, self._output.tokens
        self._ended = reason is not None
        return fresh, tokens, reason
