"""What one model holds of its GPUs: looked at before and after, and waited for until it is back."""

from __future__ import annotations

import asyncio
import time

from components.providers import triton_refusals
from components.providers.gpu_memory import (
    IDLE_MIB,
    Memory,
    beyond_claim,
    not_freed,
    read_memory,
    risen,
)
from components.providers.model_server import POLL_S, Wanted
from components.providers.progress import say
from components.providers.ssh import Session

AFTER_A_FAILURE_S = 30.0
"""Bound on cleaning up behind a failed load; it has a reason to tell, so it does not wait long."""


class ModelMemory:
    """The memory of one model's GPUs, over one connection."""

    def __init__(self, session: Session, wanted: Wanted) -> None:
        self._session = session
        self._wanted = wanted

    async def now(self) -> Memory | None:
        """What is in use; None where the model has no GPUs or nvidia-smi does not tell."""
        if not self._wanted.gpus or self._wanted.claim_mib <= 0:
            return None
        memory = await read_memory(self._session)
        if memory is None:
            name = self._wanted.instance
            say(f"{name}: nvidia-smi on the host says nothing usable: GPU memory is not seen")
        return memory

    async def nothing_held(self) -> bool:
        """Whether its GPUs are as idle as without any model."""
        memory = await self.now()
        if memory is None:
            return False
        most = max(memory.used.get(gpu, 0) for gpu in self._wanted.gpus)
        return most <= min(IDLE_MIB, self._wanted.claim_mib / 2)

    async def too_much(self, before: Memory | None) -> str:
        """What it holds beyond its claim since `before`, for people; empty where all is well."""
        now = await self.now()
        if before is None or now is None:
            return ""
        return "; ".join(beyond_claim(before, now, self._wanted.gpus, self._wanted.claim_mib))

    async def back(self, before: Memory, give_up: float) -> None:
        """Wait until the memory of a model that was unloaded is back.

        Args:
            before: what was in use while it was loaded.
            give_up: when to wait no longer, by `time.monotonic()`.

        Raises:
            Refusal: it is not back by then.
        """
        wanted = self._wanted
        while True:
            now = await self.now()
            if now is None:
                return
            held = not_freed(before, now, wanted.gpus, wanted.claim_mib)
            if not held:
                return
            if time.monotonic() > give_up:
                raise triton_refusals.memory_not_back(
                    wanted.instance,
                    wanted.unit,
                    wanted.model,
                    wanted.unload_timeout_s,
                    now.held_by(held),
                )
            await asyncio.sleep(POLL_S)

    async def still_risen(self, before: Memory | None) -> str:
        """Wait until no more is in use than before a load that failed; who still holds it, if
        anybody does after `AFTER_A_FAILURE_S`."""
        wanted = self._wanted
        give_up = time.monotonic() + AFTER_A_FAILURE_S
        while before is not None:
            now = await self.now()
            more = risen(before, now, wanted.gpus, wanted.claim_mib) if now else []
            if now is None or not more:
                break
            if time.monotonic() > give_up:
                return now.held_by(more)
            await asyncio.sleep(2 * POLL_S)
        return ""
