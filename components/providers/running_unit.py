"""An instance's systemd unit as a resource: enabled and running, and seen when it is not.

The Command provider installs and starts a unit but has no read: one that was stopped by hand, or
by a destroy that was killed half-way, would go unseen, and its models would find no server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.providers.model_server import STARTING
from components.providers.plain_refusals import BerthProvider, same
from components.providers.progress import progress
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host
from models.refusal import Refusal

STARTED_WITHIN_S = 60.0
_REPLACES = ("host", "unit")
_INPUTS = (*_REPLACES, "ssh", "script")


class RunningUnitProvider(BerthProvider):
    """Starts a unit that does not run; stopping it is left to what installed it."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer: another unit is another resource, another script only noted."""
        replaces = [key for key in _REPLACES if not same(_olds.get(key), _news.get(key))]
        noted = [key for key in ("ssh", "script") if not same(_olds.get(key), _news.get(key))]
        return DiffResult(changes=bool(replaces or noted), replaces=replaces)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Have the unit running; one that runs is left alone.

        Raises:
            Refusal: it does not start within `STARTED_WITHIN_S`.
        """
        return CreateResult(f"{props['host']}:{props['unit']}", _inputs(props) | _run(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Note the new script; what it installs is the Command's to bring."""
        return UpdateResult(_inputs(_news) | {"state": _olds.get("state", "active")})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """The unit's state; one that is stopped, failed or disabled is gone.

        Raises:
            Refusal: the host cannot be reached.
        """

        async def work(session: Session) -> str:
            return await _state(session, props["unit"])

        state = on_host(props["ssh"], work)
        if state not in STARTING:
            return ReadResult("", {})
        # A unit that restarts just now is as declared: no other output than `active`.
        return ReadResult(id_, _inputs(props) | {"state": "active"}, inputs=_inputs(props))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Nothing: whoever installed the unit stops it."""


def _inputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: props[key] for key in _INPUTS if key in props}


def _run(props: Mapping[str, Any]) -> dict[str, Any]:
    unit = str(props["unit"])

    async def work(session: Session) -> None:
        if await _state(session, unit) in STARTING:
            return
        async with progress(f"starting {unit}"):
            await _start(session, unit, str(props["script"]))

    on_host(props["ssh"], work)
    return {"state": "active"}


async def _start(session: Session, unit: str, script: str) -> None:
    give_up = time.monotonic() + STARTED_WITHIN_S
    done = await session.run("/bin/sh", "-eu", doing=f"starting {unit}", stdin=script, as_root=True)
    while (state := await _state(session, unit)) != "active":
        if done.status != 0 or state not in STARTING or time.monotonic() > give_up:
            said = " ".join((done.stderr or done.stdout).split()) or "no more was said"
            raise Refusal(
                f"{unit} does not start, it is {state or 'unknown to systemd'}: {said}",
                consequence="Nothing of what it serves can be reached.",
                fix=f"`systemctl status {unit}` and `journalctl -u {unit}` on the host say why.",
                at=session.target.login,
            )
        await asyncio.sleep(0.5)


async def _state(session: Session, unit: str) -> str:
    """The unit's ActiveState; "disabled" for one that would not come back after a boot."""
    done = await session.run(
        "systemctl",
        "show",
        "--property=ActiveState,UnitFileState",
        unit,
        doing=f"asking for {unit}'s state",
    )
    said = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    return said.get("ActiveState", "") if said.get("UnitFileState") == "enabled" else "disabled"


class RunningUnit(Resource, module="berth", name="RunningUnit"):
    """An enabled unit that runs."""

    state: pulumi.Output[str]
    """`active`."""

    def __init__(
        self,
        name: str,
        *,
        ssh: pulumi.Input[Mapping[str, Any]],
        host: str,
        unit: str,
        script: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare a running unit.

        Args:
            ssh: how the host is reached, as for `TritonModel`.
            host: the host's name.
            unit: `triton@2.service`.
            script: what installs and starts it, for root's `sh`; it may be run again.
        """
        properties = {"ssh": ssh, "host": host, "unit": unit, "script": script, "state": None}
        super().__init__(RunningUnitProvider(), name, properties, opts)
