"""What really runs on a plan's hosts, asked there and now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.providers import host_inventory
from components.providers.gateway_health import (
    ADAPTER_UNIT,
    GATEWAY_UNIT,
    GatewayHealth,
    adapter_trouble,
    gateway_health,
)
from components.providers.model_server import COMING, STARTING
from components.providers.progress import say
from components.providers.role_engine import engine_of
from components.providers.ssh import Completed, Session, open_session
from components.providers.ssh_tunnel import tunnel
from components.providers.triton_client import (
    ModelState,
    NoAnswer,
    Rejected,
    ServerDown,
    TritonClient,
)
from engines.failure import EngineError
from engines.protocol import Request, Sampling
from models.gateway import Gateway
from models.instance import CONTROL_HEADER
from models.inventory import Inventory
from models.plan import Placement, Plan, PlannedInstance
from models.refusal import Refusal

ANSWER_TOKENS = 64
GLANCE_S = 5.0
"""Bound on each look at a server, in seconds."""
NOT_RUNNING = "not running"
"""What is said of an instance at whose port nothing listens."""
SETTLES_WITHIN_S = 60.0
"""How long a run's end waits for units that systemd is still starting, in seconds."""
LOOK_AGAIN_S = 2.0
"""Pause between two looks, in seconds."""


@dataclass(frozen=True)
class LiveInstance:
    """A server as it is: what its index says, or why it could not be asked."""

    models: Mapping[str, ModelState]
    trouble: str = ""


@dataclass(frozen=True)
class LiveHost:
    """A host as it is, or why it could not be asked."""

    inventory: Inventory | None
    instances: Mapping[str, LiveInstance]
    trouble: Refusal | None = None
    services: Mapping[str, str] = field(default_factory=dict)
    """Unit of its gateway, and of its adapter → what is wrong there, empty for nothing."""
    gateway: GatewayHealth | None = None
    """What its gateway says, where it has one."""


def look(plan: Plan, ssh: Mapping[str, dict[str, Any]]) -> dict[str, LiveHost]:
    """Ask every host of the plan at once; one that cannot be asked does not hide the others."""

    async def look_all() -> dict[str, LiveHost]:
        found = await asyncio.gather(*(_host(plan, name, ssh[name]) for name in plan.hosts))
        return dict(zip(plan.hosts, found, strict=True))

    return asyncio.run(look_all())


def look_when_settled(
    plan: Plan, ssh: Mapping[str, dict[str, Any]], within_s: float = SETTLES_WITHIN_S
) -> dict[str, LiveHost]:
    """Ask as `look` does, again while a unit starts: `up` has just started or displaced it.

    A unit that took over the port of one that is deleted last restarts until the port is free.
    What still starts after `within_s` is told as it is.
    """
    give_up = time.monotonic() + within_s
    told: set[str] = set()
    while True:
        found = look(plan, ssh)
        waited_for = starting(plan, found)
        for name in waited_for:
            if name not in told:
                say(f"waiting for {name}, which systemd is starting")
                told.add(name)
        if not waited_for or time.monotonic() >= give_up:
            return found
        time.sleep(LOOK_AGAIN_S)


def starting(plan: Plan, live: Mapping[str, LiveHost]) -> list[str]:
    """Instances whose unit systemd starts, or whose server does not listen yet although it runs."""
    found = []
    for instance in plan.instances:
        host = live[instance.host_name]
        state = host.inventory.units.get(instance.unit) if host.inventory else None
        silent = state in STARTING and host.instances[instance.name].trouble == NOT_RUNNING
        # A server may have come to listen after its unit was asked for.
        if silent or state in COMING:
            found.append(instance.name)
    return found


async def _host(plan: Plan, name: str, ssh: Mapping[str, Any]) -> LiveHost:
    instances = plan.instances_on(name)
    servers = [each for each in plan.placements_on(name) if each.server]
    try:
        async with open_session(ssh) as session:
            inventory = await host_inventory.ask(session, plan.hosts[name])
            gateway, services = await _services(session, plan.hosts[name].gateway)
            asked = await asyncio.gather(
                *(_instance(session, each) for each in instances),
                *(_server(session, each) for each in servers),
            )
    except Refusal as refusal:
        return LiveHost(None, {}, refusal)
    names = [*(each.name for each in instances), *(each.served_by for each in servers)]
    found = dict(zip(names, asked, strict=True))
    return LiveHost(inventory, found, services=services, gateway=gateway)


async def _services(
    session: Session, gateway: Gateway | None
) -> tuple[GatewayHealth | None, dict[str, str]]:
    if gateway is None:
        return None, {}
    health = await gateway_health(session)
    found = {GATEWAY_UNIT: health.trouble}
    if gateway.adapter:
        found[ADAPTER_UNIT] = await adapter_trouble(session, gateway.adapter.port)
    return health, found


async def _instance(session: Session, instance: PlannedInstance) -> LiveInstance:
    key = await _key(session, instance)
    if key.status != 0:
        return LiveInstance({}, "not set up")
    if not await session.listens(instance.declared.http_port):
        return LiveInstance({}, NOT_RUNNING)
    headers = {CONTROL_HEADER: key.stdout.strip()}
    async with tunnel(session, instance.declared.http_port, headers) as http:
        try:
            return LiveInstance(await TritonClient(http).index())
        except (ServerDown, NoAnswer, Rejected) as error:
            return LiveInstance({}, str(error))


async def _key(session: Session, instance: PlannedInstance) -> Completed:
    return await session.run(
        "cat", instance.control_key_file, doing="reading the control key", as_root=True
    )


async def ask(ssh: Mapping[str, Any], placement: Placement, text: str, timeout_s: float) -> str:
    """One answer of a load's model, through the host's SSH.

    Raises:
        Refusal: if the host cannot be reached.
        EngineError: as the engine does.
    """
    sampling = Sampling(max_tokens=ANSWER_TOKENS, temperature=0.0)
    async with open_session(ssh) as session, engine_of(session, placement, timeout_s) as asked:
        said = ({"role": "user", "content": text},)
        request = (
            Request(messages=said, sampling=sampling)
            if asked.renders_chat
            else Request(prompt=text, sampling=sampling)
        )
        return (await asked.complete(request)).text


async def _server(session: Session, placement: Placement) -> LiveInstance:
    """A server of one model's own; its one model is what it holds."""
    try:
        async with engine_of(session, placement, GLANCE_S) as asked:
            health = await asked.ready()
    except EngineError as error:
        return LiveInstance({}, error.message)
    state = ModelState("READY") if health.ok else ModelState("FAILED", health.reason)
    return LiveInstance({placement.entry: state})
