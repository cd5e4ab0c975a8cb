"""An engine in a Triton model: its steps on a loop of its own, requests from Triton's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

from sandbox.serving.steps import Generation, Listener, Stepper
from sandbox.trtllm_standin.loading import DEAD
from sandbox.vllm_standin import answers
from sandbox.vllm_standin.engine import Engine
from sandbox.vllm_standin.sampling import Sampling


class Unheard:
    """No metrics: the LLM-API model has none of its own."""

    def stepped(self, generation: Generation, tokens: int) -> None:
        """Not counted."""

    def ended(self, generation: Generation) -> None:
        """Not counted."""

    def iterated(self, running: int, waiting: int, tokens: int) -> None:
        """Not counted."""


class Running:
    """The engine from `initialize` to `finalize`."""

    def __init__(self, engine: Engine, most: int, listener: Listener) -> None:
        self.engine, self._listener = engine, listener
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        made = asyncio.run_coroutine_threadsafe(self._begin(most), self._loop)
        self.stepper, self._steps = made.result()

    async def _begin(self, most: int) -> tuple[Stepper, asyncio.Task[None]]:
        stepper = Stepper(self.engine, most, self._listener, DEAD)
        return stepper, asyncio.ensure_future(stepper.run())

    async def _end(self) -> None:
        self._steps.cancel()
        await asyncio.wait([self._steps])

    def generation(self, prompt: str, wanted: Sampling) -> Generation:
        """One that is not yet submitted.

        Raises:
            ValueError: the prompt leaves no room for an answer.
        """
        length, longest = answers.tokens_of(prompt), self.engine.max_model_len
        if length + 1 > longest:
            raise ValueError(
                f"The sum of prompt length ({length}) and max_tokens ({wanted.max_tokens}) should "
                f"not exceed max_seq_len ({longest})"
            )
        name = self.engine.checkpoint.name
        outputs = [answers.begin(name, prompt, wanted, index) for index in range(wanted.n)]
        return Generation(outputs, wanted, length, longest - length)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it beside the steps."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def shutdown(self) -> None:
        """End the steps, then give the memory back."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self.engine.shutdown()
