"""Whether a host's gateway and its adapter serve all that they were given."""

from __future__ import annotations

import json
from collections.abc import Mapping
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


async def gateway_trouble(session: Session) -> str:
    """What the gateway says is wrong; empty where nothing is.

    Raises:
        Refusal: the host cannot be asked.
    """
    done = await session.run(
        "python3", "-I", "-c", ASK, f"{RUN}/status.sock",
        doing="asking for the gateway's status", as_root=True,
    )  # fmt: skip
    if done.status != 0:
        return "it does not answer"
    left_out = _object(done.stdout).get("left_out") or []
    return "; ".join(f"{each.get('file')} is left out: {each.get('why')}" for each in left_out)


async def adapter_trouble(session: Session, port: int) -> str:
    """What the adapter says is wrong; empty where nothing is.

    Args:
        session: to its host.
        port: that it listens on.

    Raises:
        Refusal: the host cannot be asked.
    """
    if not await session.listens(port):
        return "it does not answer"
    async with tunnel(session, port, {}) as http:
        try:
            answer = await http.get("/health", timeout=GLANCE_S)
        except httpx.HTTPError:
            return "it does not answer"
    refused = _object(answer.text).get("routes_refused") or {}
    told = [f"{name} stays as it was: {' '.join(why.split())}" for name, why in refused.items()]
    return "; ".join(told) if answer.status_code == 200 else f"it answers {answer.status_code}"


def _object(text: str) -> Mapping[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
