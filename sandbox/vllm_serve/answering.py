"""From a question to an answer, in one piece or as a stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sandbox.serving.steps import EngineDeadError, Generation, Stepper, Visible
from sandbox.vllm_standin import answers

from .errors import engine_dead
from .question import Question
from .settings import Settings
from .shapes import Chat, usage

_SAID = "(APIServer pid=1) ERROR AsyncLLM output_handler failed.\nEngineDeadError: {}"


@dataclass(frozen=True)
class Answering:
    """What all answers of a server share; `model` seeds the text, whatever it is served as."""

    stepper: Stepper
    settings: Settings
    model: str
    log: Callable[[str], None]
    mute: bool = False

    @asynccontextmanager
    async def _generations(self, question: Question) -> AsyncIterator[list[Generation]]:
        """All prompts' generations; those unfinished at the end are aborted."""
        async with AsyncExitStack() as stack:
            made = []
            for prompt in question.prompts:
                generation = self._begin(prompt, question)
                self.stepper.submit(generation)
                stack.callback(self.stepper.release, generation)
                made.append(generation)
            yield made

    def _begin(self, prompt: str, question: Question) -> Generation:
        wanted = question.sampling
        outputs = [
            answers.begin(self.model, prompt, wanted, index, mute=self.mute)
            for index in range(wanted.n)
        ]
        length = answers.tokens_of(prompt)
        return Generation(outputs, wanted, length, self.settings.max_model_len - length)

    def _counts(self, generations: list[Generation]) -> dict[str, Any]:
        prompt = sum(generation.prompt_tokens for generation in generations)
        output = sum(generation.output_tokens for generation in generations)
        return usage(prompt, output, self.settings.usage_details)

    async def whole(self, question: Question, shape: Chat) -> dict[str, Any]:
        """
        Raises:
            EngineDeadError: before the last token.
        """
        texts, reasons = [], []
        async with self._generations(question) as generations:
            for prompt, generation in zip(question.prompts, generations, strict=True):
                async for _ in generation.changes():
                    pass
                start = prompt if question.echo else ""
                texts += [start + output.text for output in generation.outputs]
                reasons += [str(output.finish_reason) for output in generation.outputs]
            return shape.whole(texts, reasons, self._counts(generations))

    async def stream(self, question: Question, shape: Chat) -> AsyncIterator[str]:
        """Events; a failure after the first is an event too, and `[DONE]` follows even that."""
        try:
            async with self._generations(question) as generations:
                first = shape.first(question.sampling.n)
                for chunk in first:
                    yield _event(self._with_usage(chunk, question, generations, fresh=True))
                async for chunk in self._chunks(question, shape, generations):
                    yield _event(self._with_usage(chunk, question, generations))
                if question.include_usage:
                    yield _event(shape.usage_chunk(self._counts(generations)))
        except EngineDeadError as error:
            self.log(_SAID.format(error))
            yield _event(engine_dead(error).body)
        yield "data: [DONE]\n\n"

    def _with_usage(
        self,
        chunk: dict[str, Any],
        question: Question,
        generations: list[Generation],
        fresh: bool = False,
    ) -> dict[str, Any]:
        if not question.continuous_usage:
            return chunk
        counts = self._counts(generations)
        if fresh:
            counts = usage(counts["prompt_tokens"], 0, self.settings.usage_details)
        return {**chunk, "usage": counts}

    async def _chunks(
        self, question: Question, shape: Chat, generations: list[Generation]
    ) -> AsyncIterator[dict[str, Any]]:
        """One chunk a token and output; the prompts' streams follow each other."""
        index = 0
        for prompt, generation in zip(question.prompts, generations, strict=True):
            views = [Visible(output, question.sampling) for output in generation.outputs]
            starts = [prompt if question.echo else ""] * len(views)
            async for _ in generation.changes():
                for number, view in enumerate(views):
                    fresh = view.take()
                    if fresh is not None:
                        text, starts[number] = starts[number] + fresh[0], ""
                        yield shape.chunk([shape.delta(index + number, text, fresh[2])])
            index += len(views)


def _event(chunk: dict[str, Any]) -> str:
    return f"data: {json.dumps(chunk, ensure_ascii=False, separators=(',', ':'))}\n\n"
