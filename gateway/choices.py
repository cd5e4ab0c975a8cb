"""One request's answers: several prompts, each `n` times, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from engines.protocol import Completion, Engine, Event, Request
from engines.stream import Stream

Numbered = tuple[int, Event]


def requests(prompts: Sequence[Request], n: int) -> list[Request]:
    """`n` of each. Native engines answer once, and the same seed would give the same answer."""
    return [_again(prompt, number) for prompt in prompts for number in range(n)]


def _again(request: Request, number: int) -> Request:
    seed = request.sampling.seed
    identity = f"{request.id}-{number}" if number else request.id
    if seed is None or number == 0:
        return replace(request, id=identity)
    return replace(request, id=identity, sampling=replace(request.sampling, seed=seed + number))


async def completed(engine: Engine, asked: Sequence[Request]) -> list[Completion]:
    """Every answer; the first failure ends the others."""
    if len(asked) == 1:
        return [await engine.complete(asked[0])]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(engine.complete(each)) for each in asked]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]


async def streamed(engine: Engine, asked: Sequence[Request]) -> AsyncGenerator[Numbered, None]:
    """Events with their choice's number, as they come. Closing it closes every stream."""
    streams = [engine.stream(each) for each in asked]
    try:
        if len(streams) == 1:
            async for event in streams[0]:
                yield 0, event
        else:
            async for numbered in _merged(streams):
                yield numbered
    finally:
        for stream in streams:
            await stream.aclose()


async def _merged(streams: Sequence[Stream]) -> AsyncGenerator[Numbered, None]:
    # One place a stream: who reads slowly slows the engines, as with one stream.
    arriving: asyncio.Queue[Numbered | BaseException | None] = asyncio.Queue(len(streams))

    async def read(number: int, stream: Stream) -> None:
        try:
            async for event in stream:
                await arriving.put((number, event))
            await arriving.put(None)
        except Exception as error:  # noqa: BLE001 (raised again by the reader)
            await arriving.put(error)

    tasks = [asyncio.create_task(read(*each)) for each in enumerate(streams)]
    try:
        running = len(tasks)
        while running:
            came = await arriving.get()
            if isinstance(came, BaseException):
                raise came
            if came is None:
                running -= 1
            else:
                yield came
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
