"""Routes that the tests give the gateway."""

from __future__ import annotations

from typing import Any

from models.gateway import Endpoint, Gateway, Replica, RoleRoute, key_hash
from tests.gateway_nginx.demo_file import DemoKey, DemoRoutes
from tests.gateway_nginx.engine import OWN_NAME
from tests.providers.local_sshd import free_port


def gateway(**changed: Any) -> Gateway:
    """A gateway on a free loopback port."""
    declared = {"address": "127.0.0.1", "port": free_port(), "tls": "off", "workers": 2}
    return Gateway.model_validate({**declared, **changed})


def endpoint(*addresses: str, model: str = OWN_NAME) -> Endpoint:
    """An endpoint with these replicas."""
    replicas = tuple(Replica(address, f"{address[-4:]}.service") for address in addresses)
    return Endpoint(model, "/health", replicas)


def role(*addresses: str, **changed: Any) -> RoleRoute:
    """A role served at these addresses, with all three APIs."""
    values: dict[str, Any] = {
        "model": "gemma",
        "engine": "vllm",
        "openai": endpoint(*addresses),
        "framing": endpoint(*addresses, model="demo/role"),
        "kserve": endpoint(*addresses, model="demo.gemma"),
    }
    return RoleRoute(**{**values, **changed})


def demo(name: str, key: str, roles: dict[str, RoleRoute], **changed: Any) -> DemoRoutes:
    """A demo with one key."""
    return DemoRoutes(name, (DemoKey("default", key_hash(key)),), roles, **changed)
