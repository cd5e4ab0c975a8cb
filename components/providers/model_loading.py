"""Bringing a model into a server and out of it again, never with two copies alive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from components.providers import day_one, engine_log, load_failure, triton_refusals
from components.providers.gpu_memory import OVER_MIB, Memory
from components.providers.hung_model import held_beside, kept_ensemble, restart
from components.providers.model_memory import AFTER_A_FAILURE_S, ModelMemory
from components.providers.model_server import (
    LOADING,
    Wanted,
    canary,
    loaded_digest,
    model_state,
    wait_live,
    wait_settled,
)
from components.providers.progress import progress, say
from components.providers.ssh import Session
from components.providers.triton_client import (
    ModelState,
    NoAnswer,
    Rejected,
    ServerDown,
    TritonClient,
)
from models.refusal import Refusal

DEAD = "Stub process"
"""Triton's words for a backend process that is gone: `Stub process 'X' is not healthy.`"""
DEAD_S = 3.0
"""How long Triton may take to notice that there is nothing to unload, in seconds."""

Closing = Callable[[], Awaitable[None]]
"""Sends no more requests to a model, and waits for those under way."""


class ModelLoading:
    """What is done with one model over one connection."""

    def __init__(self, session: Session, triton: TritonClient, wanted: Wanted) -> None:
        self._session = session
        self._triton = triton
        self._wanted = wanted
        self._memory = ModelMemory(session, wanted)
        self._name = f"{wanted.instance}: "

    async def wait_for_server(self) -> None:
        """Wait until the server answers.

        Raises:
            NotServing: nothing listens: its unit has ended, or does not come up.
            Refusal: it listens and does not answer.
        """
        try:
            async with progress(f"{self._name}waiting for the server"):
                await wait_live(
                    self._session, self._triton, self._wanted, self._wanted.load_timeout_s
                )
        except Refusal as refusal:
            if await self._session.listens(self._wanted.http_port):
                raise
            raise load_failure.NotServing(
                refusal.cause, consequence=refusal.consequence, fix=refusal.fix, at=refusal.at
            ) from refusal

    async def ensure(
        self, *, anew: bool = False, known: bool = True, close: Closing | None = None
    ) -> str:
        """Have the model loaded as declared, and answering; its digest.

        Idempotent: what a killed run began is waited for, and kept if it is what is wanted.

        Args:
            anew: unload what is loaded even if its digest is the wanted one.
            known: whether what is loaded has been through the canary; a run may have been killed
                between the two.
            close: sends no more requests to the model, before it goes or its canary looks at it;
                where it is kept, they go on.

        Raises:
            NotServing: server not up or ended meanwhile, load or canary failed, or it takes more
                than its claim.
            Refusal: something of it is left, or memory is not back.
        """
        wanted = self._wanted
        await self.wait_for_server()
        # A load on top of one that is under way would leave two copies alive for a while.
        async with progress(f"{self._name}waiting for {wanted.model} to settle"):
            state = await self._settled()
        if state.state == "READY":
            digest = await loaded_digest(self._triton, wanted.model)
            if digest == wanted.digest and not anew:
                failure = broken = await self._canary()
                if failure is None and not known:
                    failure = await day_one.canary_of(
                        self._session, self._triton, wanted, alone=False
                    )
                if failure is None:
                    return digest
                say(f"{self._name}{wanted.model} is READY but fails ({failure}): loading it again")
                await self.unload(broken, first=close)
            else:
                await self.unload(first=close)
            close = None
        return await self._load(close)

    async def _settled(self) -> ModelState:
        """Its state once it neither loads nor unloads.

        A model whose process died in an answer stays UNLOADING for ever (`_leave_dead`): where
        nothing is held on its GPUs, that is what has come of it. Nor need a load end that a
        run before gave up on.
        """
        try:
            return await wait_settled(self._triton, self._wanted, DEAD_S)
        except Refusal:
            state = await model_state(self._triton, self._wanted.model)
            if state.state == "UNLOADING" and await self._memory.nothing_held():
                say(f"{self._name}{self._wanted.model} is dead: it holds nothing any more")
                return ModelState("")
        try:
            return await self.at_rest()
        except Refusal:
            state = await model_state(self._triton, self._wanted.model)
            if state.state != LOADING or not self._wanted.has_fallback:
                raise
            raise await self._too_slow(None) from None

    async def at_rest(self) -> ModelState:
        """Wait while it loads or unloads; an ensemble that stays is ended with its server.

        Raises:
            Refusal: it takes longer than the model's own timeout for what it does.
        """
        wanted = self._wanted
        try:
            return await wait_settled(self._triton, wanted)
        except Refusal:
            if not await kept_ensemble(self._triton, wanted):
                raise
        if beside := await held_beside(self._triton, wanted):
            raise triton_refusals.ensemble_kept(
                wanted.instance, wanted.unit, wanted.model, wanted.unload_timeout_s, beside
            )
        await restart(self._session, wanted, "the unload")
        await self.wait_for_server()
        return await wait_settled(self._triton, wanted)

    async def unload(self, failure: str | None = None, *, first: Closing | None = None) -> None:
        """Unload and wait until Triton and the GPUs both say that it is gone.

        Args:
            failure: why inferences fail, if it is known that they do.
            first: done at the last moment before it, such as closing the routes that lead there.

        Raises:
            Refusal: still unloading, or memory still held, after `unload_timeout_s`.
        """
        wanted = self._wanted
        async with progress(f"{self._name}unloading {wanted.model}"):
            give_up = time.monotonic() + wanted.unload_timeout_s
            before = await self._memory.now()
            failure = failure or await self._failure()
            if first is not None:
                await first()
            await self._triton.unload(wanted.model)
            if failure is not None and DEAD in failure:
                await self._leave_dead()
                return
            await self.at_rest()
            # An engine that fails may have died and given its memory back before: nothing to see.
            if before is not None and failure is None:
                await self._memory.back(before, give_up)

    async def _failure(self) -> str | None:
        """Why what is loaded fails, which may be another engine's than the wanted one."""
        wanted = self._wanted
        try:
            spoken = await self._triton.speaks(wanted.model, wanted.engine)
            return await canary(self._triton, replace(wanted, engine=spoken), 5)
        except NoAnswer:
            return None  # busy, as far as one can tell
        except Rejected as error:
            return str(error)

    async def _leave_dead(self) -> None:
        """Do not wait long for a model whose process is dead.

        Triton 2.51 keeps the request that met the dead process, and with it the model, UNLOADING
        for ever; a load on top of that is clean, and there is no second copy: the first is dead.
        """
        try:
            await wait_settled(self._triton, self._wanted, DEAD_S)
        except Refusal:
            say(f"{self._name}{self._wanted.model} had lost its process: Triton is left unloading")

    async def _load(self, close: Closing | None) -> str:
        """Load it. Its routes may be open still, as where its server was started again."""
        wanted = self._wanted
        before, log_end, alone = await asyncio.gather(
            self._memory.now(),
            engine_log.cursor(self._session, wanted.unit),
            self._closed(close),
        )
        try:
            async with progress(f"{self._name}loading {wanted.model}"):
                await self._triton.load(wanted.model, timeout_s=wanted.load_timeout_s)
        except Rejected as error:
            if error.status == 403:
                raise
            reason = error.reason
            if engine_log.POINTS_TO_THE_LOG.search(reason):
                reason = await engine_log.root_cause(self._session, wanted.unit, log_end) or reason
            raise load_failure.load_refused(
                reason,
                model=wanted.model,
                unit=wanted.unit,
                instance=wanted.instance,
                gpus=wanted.gpus,
                still_held=await self._clear(before),
            ) from error
        except NoAnswer as error:
            raise await self._too_slow(before) from error
        except ServerDown as error:
            raise await self._died(error, before, log_end) from error
        try:
            digest = await loaded_digest(self._triton, wanted.model)
        except ServerDown as error:  # As it began to compute: nobody has asked it anything yet.
            raise await self._died(error, before, log_end) from error
        if digest != wanted.digest:
            await self._clear(before)
            raise triton_refusals.other_configuration(
                wanted.instance, wanted.model, wanted.digest, digest
            )
        async with progress(f"{self._name}canary of {wanted.model}"):
            failure = await day_one.canary_of(self._session, self._triton, wanted, alone=alone)
        if failure is not None:
            held = await self._clear(before, failure)
            raise triton_refusals.does_not_answer(
                wanted.instance, wanted.unit, wanted.model, failure, held
            )
        if taken := await self._memory.too_much(before):
            held = await self._clear(before)
            raise triton_refusals.takes_too_much(
                wanted.instance, wanted.model, taken, OVER_MIB, held
            )
        return digest

    async def _died(self, error: ServerDown, before: Memory | None, log_end: str) -> Exception:
        """What comes of a server that ended with its model; the error itself where it is the
        connection to the host that broke."""
        if self._session.broken:
            return error
        wanted = self._wanted
        why = await engine_log.root_cause(self._session, wanted.unit, log_end)
        return triton_refusals.died(
            wanted.instance,
            wanted.unit,
            wanted.model,
            why or f"the connection broke off ({error})",
            await self._clear(before),
        )

    async def _too_slow(self, before: Memory | None) -> Refusal:
        """What comes of a load that has not ended in its time. It holds its server and its GPUs, so
        where a fallback waits for them and nothing else is there, it is ended with the server.

        Args:
            before: what was in use before the load, where that is known.
        """
        wanted = self._wanted
        about = (wanted.instance, wanted.unit, wanted.model, wanted.load_timeout_s)
        if not wanted.has_fallback:
            await self._ask_to_unload()
            return triton_refusals.load_too_slow(*about)
        if beside := await held_beside(self._triton, wanted):
            await self._ask_to_unload()
            return triton_refusals.load_too_slow(*about, beside)
        await restart(self._session, wanted, "the load")
        return triton_refusals.load_ended(*about, await self._memory.still_risen(before))

    async def _closed(self, close: Closing | None) -> bool:
        """Whether no client can come. A gateway that cannot be changed keeps no model from loading:
        whether a route can be opened again is for its own resource to see."""
        try:
            await (close() if close else asyncio.sleep(0))
        except Refusal as refusal:
            say(str(refusal))
            return False
        return True

    async def _canary(self) -> str | None:
        wanted = self._wanted
        async with progress(f"{self._name}asking {wanted.model} for a first answer"):
            try:
                return await canary(self._triton, wanted, wanted.canary_timeout_s)
            except NoAnswer as error:
                return f"no answer within {error.seconds:.0f} s"

    async def _ask_to_unload(self) -> None:
        """Triton queues an unload behind a load, and does it although nobody waits for it."""
        try:
            await self._triton.unload(self._wanted.model, timeout_s=2)
        except (NoAnswer, Rejected):
            return
        except ServerDown:
            if self._session.broken:
                raise  # Else a server that ends takes its models with it.

    async def _clear(self, before: Memory | None, failure: str = "") -> str:
        """Leave nothing of a failed load behind; who still holds memory, if anybody does.

        Args:
            before: what was in use before the load.
            failure: what its canary said, if that is what failed.
        """
        dead = DEAD in failure
        await self._ask_to_unload()
        try:
            await wait_settled(self._triton, self._wanted, DEAD_S if dead else AFTER_A_FAILURE_S)
        except Refusal as refusal:
            if not dead:
                return refusal.cause
        except ServerDown:
            if self._session.broken:
                raise
        return await self._memory.still_risen(before)
