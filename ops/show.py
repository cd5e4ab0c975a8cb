"""Tables for a person: hosts and GPUs, instances, models, roles."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from components.providers.gateway_health import ADAPTER_UNIT, GATEWAY_UNIT
from models.gpu_map import gpu_map, of_host
from models.instance import LOOPBACK
from models.plan import Plan
from ops.live import LiveHost, LiveInstance


def show(console: Console, plan: Plan, live: Mapping[str, LiveHost]) -> bool:
    """Print what runs. True when all that is declared is there and serves."""
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
    if plan.placements:
        console.print(models)
        console.print(_roles(plan))
    return not (troubled or idle or unserved or missing)


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
    rows = [(each, each.name, each.unit, each.endpoint) for each in plan.instances]
    rows += [
        (each.instance, each.server.name, each.server.unit, each.server.endpoint)
        for each in plan.placements
        if each.server
    ]
    for instance, name, unit, endpoint in rows:
        inventory = live[instance.host_name].inventory if instance.host_name in live else None
        state = inventory.units.get(unit, "not there") if inventory else "?"
        trouble = _live(name, instance.host_name, live).trouble
        good = state == "active" and not trouble
        troubled = troubled or not good
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
        ready = state == "READY"
        missing = missing or not ready
        reason = f" {held.reason}" if held and held.reason and not ready else ""
        table.add_row(
            placement.entry,
            placement.served_by,
            placement.engine,
            ", ".join(str(gpu.index) for gpu in instance.gpus),
            f"{placement.catalog.max_model_len} tokens",
            f"[green]{state}[/green]" if ready else f"[red]{state}[/red]{reason}",
        )
    return table, missing


def _roles(plan: Plan) -> Table:
    table = _table("Roles", "role", "model", "served by", "on host", "at")
    for role, placement in plan.roles.items():
        instance = placement.instance
        served = (placement.served_by, instance.host_name, placement.endpoint)
        table.add_row(role, placement.model, *served)
    return table


def _live(instance: str, host: str, live: Mapping[str, LiveHost]) -> LiveInstance:
    if host not in live:
        return LiveInstance({}, "")
    return live[host].instances.get(instance, LiveInstance({}, "host not reached"))
