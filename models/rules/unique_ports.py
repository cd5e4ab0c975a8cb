"""A port of a host is one server's, across all stacks; its gateway's and adapter's too."""

from __future__ import annotations

from collections import defaultdict

from models.finding import Finding, wrong
from models.judged import Judged
from models.rules.closed_ports import HTTP, METRICS

NAME = "unique-ports"
DESCRIPTION = "Each port of a host is one server's, whatever stack made it."
REMEDY = "Give each HTTP and metrics port of a host its own number."
_KEYS = {HTTP: "http_port", METRICS: "metrics_port"}


def findings(judged: Judged) -> list[Finding]:
    """One for each port that two want."""
    uses: dict[tuple[str, int], set[str]] = defaultdict(set)
    for instance in judged.own_instances:
        for open_port in instance.published:
            key = "port" if instance.role else _KEYS.get(open_port.inside)
            key = key or f"port {open_port.inside}"
            uses[instance.host, open_port.port].add(f"{instance.at}.{key}")
    for service in judged.services:
        uses[service.host, service.port].add(f"{service.at}.port")
    found = []
    for (host, port), places in sorted(uses.items()):
        first, *more = sorted(places)
        taken = judged.hosts[host].taken_ports.get(port) if host in judged.hosts else None
        if not more and taken is None:
            continue
        free = _free(judged, host, port, {used for on, used in uses if on == host})
        if more:
            found.append(
                wrong(
                    f"port {port} of host `{host}` is used twice, here and at {first}",
                    consequence="The second server could not start.",
                    fix="give each HTTP and metrics port of a host its own number; "
                    f"{free} is free.",
                    at=more[0],
                )
            )
        if taken is not None:
            found.append(
                wrong(
                    f"port {port} is in use by {taken}",
                    consequence="The server could not start.",
                    fix=f"choose another; {free} is free. `ss -ltnp 'sport = :{port}'` there shows "
                    "who has it.",
                    at=f"host {host}, {first}",
                )
            )
    return found


def _free(judged: Judged, host: str, port: int, used: set[int]) -> int:
    """The next port that nobody is known to use."""
    taken = used | (set(judged.hosts[host].taken_ports) if host in judged.hosts else set())
    others = (*range(max(port, 1) + 1, 65536), *range(1024, 65536))
    return next((free for free in others if free not in taken), port)
