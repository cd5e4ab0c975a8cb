"""Nothing of a server is open beyond its host's loopback without a key.

Triton's control API is unauthenticated by default (CVE-2025-23316 was reached through it), and its
metrics have no key at all.
"""

from __future__ import annotations

import ipaddress

from models.finding import Finding, wrong
from models.judged import Judged, JudgedInstance, Published

NAME = "closed-ports"
DESCRIPTION = "HTTP is open beyond loopback only where all APIs ask for a key; metrics never are."
REMEDY = "Listen on 127.0.0.1, or set `keyed_apis: all`."
HTTP, METRICS = 8000, 8002
"""Triton's default ports, inside the container."""


def findings(judged: Judged) -> list[Finding]:
    """One for each port that is too far open."""
    return [found for instance in judged.own_instances for found in _of(instance)]


def _of(instance: JudgedInstance) -> list[Finding]:
    found = []
    if instance.network == "host":
        found.append(
            wrong(
                f"the container of {instance.name} is in the host's own network",
                consequence="Every port of the server would be open on every address of the host.",
                fix="network mode `bridge`, with HTTP and metrics published on 127.0.0.1.",
                at=instance.at,
            )
        )
    for port in sorted(set(instance.published), key=lambda port: (port.inside, port.address)):
        if _loopback(port.address) or (port.inside == HTTP and instance.keyed == "all"):
            continue
        found.append(_open(instance, port))
    return found


def _open(instance: JudgedInstance, port: Published) -> Finding:
    address = port.address or "0.0.0.0"  # noqa: S104 - what Docker takes it for
    if port.inside == HTTP:
        unkeyed = "no API asks" if not instance.keyed else f"only `{instance.keyed}` APIs ask"
        return wrong(
            f"{instance.name} opens HTTP on {address}:{port.port}, and {unkeyed} for the key",
            consequence="Anybody who reaches that address could use or stop its models.",
            fix="set `keyed_apis: all`, or `listen: 127.0.0.1`.",
            at=f"{instance.at}.listen",
        )
    what = "metrics" if port.inside == METRICS else f"port {port.inside}"
    return wrong(
        f"{instance.name} opens {what} on {address}:{port.port}",
        consequence="Triton has no key for it, so anybody who reaches that address could read it.",
        fix="publish it on 127.0.0.1 only.",
        at=f"{instance.at}.metrics_port" if port.inside == METRICS else instance.at,
    )


def _loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
