"""Whether a host's gateway and its adapter serve all that they were given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from components.providers.ssh import Session
from components.providers.ssh_tunnel import tunnel
from components.renderers import adapter_unit, gateway_unit
from components.renderers.gateway_config import RUN
from components.renderers.gateway_shell import ASK

GATEWAY_UNIT, ADAPTER_UNIT = gateway_unit.NAME, adapter_unit.NAME
GLANCE_S = 5.0
"""Bound on the adapter's answer, in seconds."""
SILENT = "it does not answer"


@dataclass(frozen=True)
class GatewayHealth:
    """What a gateway says of itself and of the roles that it knows."""

    trouble: str
    """What is wrong with it as a whole; empty where nothing is."""
    roles: Mapping[str, Mapping[str, str]]
    """`demo/role` → unit of a replica, or nothing for all of them → why it gets no requests."""

    def why_not(self, demo: str, role: str, unit: str) -> str:
        """Why clients get nothing of a role from a unit; empty where they do, and where the
        gateway does not answer at all."""
        if self.trouble == SILENT:
            return ""
        units = self.roles.get(f"{demo}/{role}")
        if units is None:
            return "the gateway does not know it"
        return units.get(unit) or units.get("") or ""


async def gateway_health(session: Session) -> GatewayHealth:
    """Ask the gateway for its status.

    Raises:
        Refusal: the host cannot be asked.
    """
    done = await session.run(
        "python3", "-I", "-c", ASK, f"{RUN}/status.sock",
        doing="asking for the gateway's status", as_root=True,
    )  # fmt: skip
    if done.status != 0:
        return GatewayHealth(SILENT, {})
    said = _object(done.stdout)
    left_out = said.get("left_out") or []
    told = [f"{each.get('file')} is left out: {each.get('why')}" for each in left_out]
    roles = {
        f"{demo}/{role}": _unserved(about)
        for demo, those in (said.get("demos") or {}).items()
        for role, about in those.items()
    }
    return GatewayHealth("; ".join(told), roles)


def _unserved(role: Mapping[str, Any]) -> dict[str, str]:
    """Of the replicas that OpenAI's API is asked of."""
    units = {
        each["unit"]: each["trouble"]
        for each in role.get("replicas") or []
        if each["api"] == "openai" and each["trouble"]
    }
    return units | ({"": role["trouble"]} if role.get("trouble") else {})


async def adapter_trouble(session: Session, port: int) -> str:
    """What the adapter says is wrong; empty where nothing is.

    Args:
        session: to its host.
        port: that it listens on.

    Raises:
        Refusal: the host cannot be asked.
    """
    if not await session.listens(port):
        return SILENT
    async with tunnel(session, port, {}) as http:
        try:
            answer = await http.get("/health", timeout=GLANCE_S)
        except httpx.HTTPError:
            return SILENT
    refused = _object(answer.text).get("routes_refused") or {}
    told = [f"{name} stays as it was: {' '.join(why.split())}" for name, why in refused.items()]
    return "; ".join(told) if answer.status_code == 200 else f"it answers {answer.status_code}"


def _object(text: str) -> Mapping[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
