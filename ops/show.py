"""Tables for a person: hosts and GPUs, instances, models, roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from components.providers.gateway_health import ADAPTER_UNIT, GATEWAY_UNIT
from models.answering import READY, answering, stand_in
from models.gpu_map import gpu_map, of_host
from models.instance import LOOPBACK
from models.plan import Placement, Plan
from ops.live import LiveHost, LiveInstance

Reasons = Callable[[], Mapping[str, str]]
"""Role → why its own model does not serve, where anybody knows."""


def show(
    console: Console, plan: Plan, live: Mapping[str, LiveHost], reasons: Reasons = dict
) -> bool:
    """Print what runs. True when each role is served, by its own model or by its fallback.

    Args:
        reasons: asked only where a fallback serves.
    """
    troubled = False
    for name, host in live.items():
        if host.trouble is not None:
            console.print(f"[red]{name}[/red]: {host.trouble}", highlight=False)
            troubled = True
    console.print(_gpus(plan, live))
    for name, host in live.items():
        if host.inventory is not None:
            drawn = gpu_map(of_host(name, plan.hosts[name], host.inventory))
            console.print(drawn, highlight=False, markup=False, soft_wrap=True)
    instances, idle = _instances(plan, live)
    console.print(instances)
    gateways, unserved = _gateways(plan, live)
    if gateways.row_count:
        console.print(gateways)
    models, missing = _models(plan, live)
    roles, shut = _roles(plan, live)
    if plan.placements:
        console.print(models)
        console.print(roles)
    for line in stand_ins(plan, live, reasons):
        console.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)
    return not (troubled or idle or unserved or missing or shut)


def stand_ins(plan: Plan, live: Mapping[str, LiveHost], reasons: Reasons = dict) -> list[str]:
    """A line for each role that is not on its own model although it declares a fallback."""
    found = [
        (role, first, fallback)
        for role, first in plan.roles.items()
        if (fallback := plan.fallback_of(first)) and _state(first, live) != READY
    ]
    known = reasons() if found else {}
    return [
        stand_in(
            role,
            first,
            answering(
                first,
                fallback,
                _state(first, live),
                known.get(role, "") or _why(first, live),
                _state(fallback, live),
            ),
        )
        for role, first, fallback in found
    ]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim")
    for column in columns:
        right = column.endswith("MiB")
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    return table


def _gpus(plan: Plan, live: Mapping[str, LiveHost]) -> Table:
    table = _table("Hosts and GPUs", "host", "GPU", "name", "UUID", "used MiB", "of MiB")
    for host_name, host in plan.hosts.items():
        inventory = live[host_name].inventory
        there = {listed.uuid: listed for listed in inventory.gpus.found} if inventory else {}
        for gpu in host.gpus:
            listed = there.get(gpu.uuid)
            table.add_row(
                host_name,
                str(gpu.index),
                listed.name if listed else "[red]not there[/red]",
                gpu.uuid,
                str(listed.used_mib) if listed else "?",
                str(listed.memory_mib if listed else gpu.memory_mib),
            )
    return table


def _instances(plan: Plan, live: Mapping[str, LiveHost]) -> tuple[Table, bool]:
    table = _table("Instances", "instance", "host", "unit", "state", "GPUs", "endpoint there")
    troubled = False
    rows = [(each, each.name, each.unit, each.endpoint, False) for each in plan.instances]
    rows += [
        (
            each.instance,
            each.server.name,
            each.server.unit,
            each.server.endpoint,
            _other_serves(plan, each, live),
        )
        for each in plan.placements
        if each.server
    ]
    for instance, name, unit, endpoint, spare in rows:
        inventory = live[instance.host_name].inventory if instance.host_name in live else None
        state = inventory.units.get(unit, "not there") if inventory else "?"
        trouble = _live(name, instance.host_name, live).trouble
        good = state == "active" and not trouble
        troubled = troubled or not (good or spare)
        table.add_row(
            name,
            instance.host_name,
            unit,
            f"[green]{state}[/green]" if good else f"[red]{state}[/red] {trouble}".strip(),
            ", ".join(str(gpu.index) for gpu in instance.gpus),
            endpoint,
        )
    return table, troubled


def _gateways(plan: Plan, live: Mapping[str, LiveHost]) -> tuple[Table, bool]:
    table = _table("Gateways", "host", "what", "unit", "state", "at")
    troubled = False
    for name, host in plan.hosts.items():
        if host.gateway is None:
            continue
        seen = live[name]
        rows = [("gateway", GATEWAY_UNIT, host.gateway.reached_at(host.ssh.address))]
        if host.gateway.adapter:
            port = host.gateway.adapter.port
            rows.append(("adapter", ADAPTER_UNIT, f"http://{LOOPBACK}:{port} there"))
        for what, unit, at in rows:
            state = seen.inventory.units.get(unit, "not there") if seen.inventory else "?"
            trouble = seen.services.get(unit, "host not reached")
            good = state == "active" and not trouble
            troubled = troubled or not good
            said = f"[green]{state}[/green]" if good else f"[red]{state}[/red] {escape(trouble)}"
            table.add_row(name, what, unit, said.strip(), at)
    return table, troubled


def _models(plan: Plan, live: Mapping[str, LiveHost]) -> tuple[Table, bool]:
    table = _table("Models", "model", "instance", "engine", "GPUs", "context", "state")
    missing = False
    for placement in plan.placements:
        instance = placement.instance
        held = _live(placement.served_by, instance.host_name, live).models.get(placement.entry)
        state = (held.state or "not loaded") if held else "not there"
        ready = state == READY
        missing = missing or not (ready or _other_serves(plan, placement, live))
        reason = f" {held.reason}" if held and held.reason and not ready else ""
        spare = bool(placement.instead_of) and not ready and _other_serves(plan, placement, live)
        table.add_row(
            placement.entry,
            placement.served_by,
            placement.engine,
            ", ".join(str(gpu.index) for gpu in instance.gpus),
            f"{placement.catalog.max_model_len} tokens",
            f"[green]{state}[/green]"
            if ready
            else "stands by"
            if spare
            else f"[red]{state}[/red]{reason}",
        )
    return table, missing


def _other_serves(plan: Plan, placement: Placement, live: Mapping[str, LiveHost]) -> bool:
    """Whether its fallback serves, or what it is the fallback of."""
    others = [
        each
        for each in plan.placements
        if placement.claim_name == each.instead_of or each.claim_name == placement.instead_of
    ]
    return any(_state(each, live) == READY for each in others)


def _state(placement: Placement, live: Mapping[str, LiveHost]) -> str:
    """What its server says of it; empty where that holds nothing of it."""
    held = _live(placement.served_by, placement.instance.host_name, live).models
    return held[placement.entry].state if placement.entry in held else ""


def _why(placement: Placement, live: Mapping[str, LiveHost]) -> str:
    """What its server says of why it is not there."""
    there = _live(placement.served_by, placement.instance.host_name, live)
    held = there.models.get(placement.entry)
    return (held.reason if held else "") or there.trouble


def _roles(plan: Plan, live: Mapping[str, LiveHost]) -> tuple[Table, bool]:
    """The table, and whether clients of a gateway get nothing from one that is in it."""
    table = _table("Roles", "role", "model", "served by", "on host", "at", "clients")
    shut = False
    for role, first in plan.roles.items():
        fallback = plan.fallback_of(first)
        instead = fallback and _state(first, live) != READY and _state(fallback, live) == READY
        for each in (fallback,) if fallback and instead else plan.replicas_of(role):
            name, host = each.served_by, each.instance.host_name
            gateway = live[host].gateway if host in live else None
            why = gateway.why_not(each.demo, role, f"{name}.service") if gateway else ""
            shut = shut or bool(why)
            told = f"[red]refused[/red]: {escape(why)}" if why else "served" if gateway else ""
            table.add_row(role, each.model, name, host, each.endpoint, told)
    return table, shut


def _live(instance: str, host: str, live: Mapping[str, LiveHost]) -> LiveInstance:
    if host not in live:
        return LiveInstance({}, "")
    return live[host].instances.get(instance, LiveInstance({}, "host not reached"))
