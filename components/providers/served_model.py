"""A model held for life by a server of its own, as a resource: answering, and gone when deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.providers import fallback as falling_back
from components.providers import gateway_routes, ledger, served_unit, vacating
from components.providers.eviction import end_former
from components.providers.fallback import FAILED, READY
from components.providers.load_failure import NotServing
from components.providers.plain_refusals import BerthProvider, same
from components.providers.server_answering import Served, await_answers, glance
from components.providers.server_turn import unit_turn
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host

_REPLACES = ("host", "unit", "engine", "port", "model", "incarnation", "gpus", "claim_name")
_OTHERS = (
    "ssh",
    "prepare",
    "claim_mib",
    "owner",
    "holder",
    "arguments",
    "load_timeout_s",
    "unload_timeout_s",
    "canary_timeout_s",
    "roles",
    "fallback",
)
_INPUTS = (*_REPLACES, *_OTHERS, "vacates")
_TRIED = ("claim_mib", "load_timeout_s", "canary_timeout_s")
"""What makes a model that failed worth another try, beside what makes it another resource."""


class ServedModelProvider(BerthProvider):
    """Waits until a server answers, reads whether it does, and sees it out."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer. Another server is another resource."""
        replaces = [key for key in _REPLACES if not same(_olds.get(key), _news.get(key))]
        updates = [key for key in _OTHERS if not same(_olds.get(key), _news.get(key))]
        return DiffResult(
            changes=bool(replaces or updates)
            or vacating.others(_olds, _news)
            or not falling_back.settled(_olds, _news),
            replaces=replaces,
            delete_before_replace=True,
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Have the server started, and see its model through the canary.

        What the unit served before ends first, wherever that was, and its claim is released. What
        else it cannot stand beside serves until all is ready for its start.

        One that has a fallback and does not serve is not refused: it is FAILED, with the reason.

        Raises:
            Refusal: its unit ends, or the canary fails; then the unit is stopped, so that it does
                not start over and over on its GPUs.
        """
        served = Served.of(props)

        async def work(session: Session) -> None:
            await end_former(session, str(props["holder"]), served.unit)
            await served_unit.prepare(session, served.unit, str(props["prepare"]))
            await await_answers(session, served, room)

        async def room(session: Session) -> None:
            await falling_back.make_room(session, props)
            await vacating.clear(session, props)

        try:
            on_host(props["ssh"], work)
            state = falling_back.serves_now()
        except NotServing as refusal:
            state = falling_back.failed(props, refusal)
        return CreateResult(f"{props['host']}:{props['unit']}", _inputs(props) | state)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """What replaces nothing is only noted; a server that did not answer is waited for.

        Raises:
            Refusal: as `create`.
        """
        if falling_back.stays_failed(_olds, _news, _TRIED):
            return UpdateResult(_inputs(_news) | falling_back.as_before(_olds))
        if _olds.get("state") != READY:
            return UpdateResult(self.create(_news).outs)
        if not same(_olds.get("prepare"), _news.get("prepare")):

            async def work(session: Session) -> None:
                await served_unit.prepare(session, Served.of(_news).unit, str(_news["prepare"]))

            on_host(_news["ssh"], work)
        if vacating.others(_olds, _news):
            on_host(_news["ssh"], lambda session: vacating.clear(session, _news))
        return UpdateResult(_inputs(_news) | falling_back.serves_on(_olds))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Whether it answers. One whose unit does not run, or that gives no token, is gone.

        Raises:
            Refusal: the host cannot be reached.
        """
        if props.get("state") == FAILED:
            return ReadResult(id_, {**props}, _inputs(props))
        served = Served.of(props)

        async def work(session: Session) -> str | None:
            return await glance(session, served)

        state = on_host(props["ssh"], work)
        if state is None:
            return ReadResult("", {})
        inputs = _inputs(props)
        return ReadResult(id_, inputs | falling_back.serves_on(props) | {"state": state}, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Stop the unit, wait until the memory is back, then release a claim that was moved away.

        Raises:
            Refusal: the host cannot be reached, the unit does not stop, memory is still held, or
                nothing serves in its place.
        """
        served = Served.of(_props)

        async def work(session: Session) -> None:
            await falling_back.keep_the_last(session, _props)
            async with unit_turn(session, served.unit):
                if _props.get("state") != FAILED:  # That was ended, and left nothing behind.
                    await gateway_routes.close(
                        session, _props["holder"], _props["claim_name"], gateway_routes.REPLACED
                    )
                    await served_unit.end(
                        session, served.unit, served.gpus, served.claim_mib, served.unload_timeout_s
                    )
                await ledger.release_leaving(session, _props["holder"], _props["claim_name"])

        on_host(_props["ssh"], work)


class ServedModel(Resource, module="berth", name="ServedModel"):
    """A model that a server of its own holds."""

    state: pulumi.Output[str]
    """`READY`: it answered, streamed, was cancelled and answered again. `FAILED`: it did not, and
    its fallback is to serve."""
    reason: pulumi.Output[str]
    """Why it is FAILED."""
    attempt: pulumi.Output[str]
    """When it failed: UTC, another one for each try."""
    since: pulumi.Output[str]
    """When it came to serve: UTC, another one for each start."""

    def __init__(
        self,
        name: str,
        *,
        ssh: pulumi.Input[Mapping[str, Any]],
        host: str,
        unit: str,
        engine: str,
        port: int,
        model: str,
        incarnation: pulumi.Input[str],
        prepare: pulumi.Input[str],
        gpus: Sequence[str],
        claim_mib: int,
        owner: str,
        holder: str,
        claim_name: str,
        arguments: Mapping[str, object],
        load_timeout_s: int,
        unload_timeout_s: int,
        canary_timeout_s: int,
        roles: Sequence[str] = (),
        fallback: Mapping[str, Any] | None = None,
        vacates: pulumi.Input[Sequence[Mapping[str, Any]]] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare a served model.

        Args:
            ssh: how the host is reached: `address`, `port`, `user`, `private_key_file` (or None)
                and `host_key`.
            unit: the server's systemd unit.
            engine: what runs in it: a name of `engines.KNOWN`.
            port: where it listens on the host's loopback.
            model: the server's own name of the model.
            incarnation: changes whenever the server is another process, or has to become one.
            prepare: a shell script that is run before the unit is started; no secrets.
            gpus: UUIDs of the GPUs that it takes memory on.
            claim_mib: memory that it takes on each of them, in MiB.
            owner: whose it is, as people call it.
            holder: who holds its claim: `project/stack/demo`.
            claim_name: its claim's name in the host's ledger.
            arguments: what its engine is told, by the names of vLLM, for the policies.
            load_timeout_s: bound on its start, in seconds.
            unload_timeout_s: bound on waiting for its memory once it has stopped, in seconds.
            canary_timeout_s: bound on each answer of the canary, in seconds.
            roles: the names that clients call it by.
            fallback: the claim of its fallback, as the ledger has it: then a failure is no error.
            vacates: claims of its demo that it cannot stand beside: what they stand for is ended
                just before it starts.
        """
        properties = {
            "ssh": ssh,
            "host": host,
            "unit": unit,
            "engine": engine,
            "port": port,
            "model": model,
            "incarnation": incarnation,
            "prepare": prepare,
            "gpus": list(gpus),
            "claim_mib": claim_mib,
            "owner": owner,
            "holder": holder,
            "claim_name": claim_name,
            "arguments": dict(arguments),
            "load_timeout_s": load_timeout_s,
            "unload_timeout_s": unload_timeout_s,
            "canary_timeout_s": canary_timeout_s,
            "roles": sorted(roles),
            "fallback": fallback,
            "vacates": vacates,
            "state": None,
            "reason": None,
            "attempt": None,
            "since": None,
        }
        super().__init__(ServedModelProvider(), name, properties, opts)


def _inputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: props[key] for key in _INPUTS if key in props}
