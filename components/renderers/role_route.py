"""What a role's name leads to: its engines' addresses for the gateway, and their models' there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from components.renderers.entry import weights_path
from components.renderers.server_container import renderer
from models.engine import TRAITS
from models.gateway import Endpoint, Replica, RoleRoute
from models.instance import LOOPBACK
from models.plan import Placement

KEYED = "all"
"""`keyed_apis` of an instance whose inference asks for its control key too."""


def role_route(role: str, replicas: Sequence[Placement], adapter_port: int | None) -> RoleRoute:
    """The route of a role that is served.

    Args:
        role: its name.
        replicas: what serves it: all of one model and one engine.
        adapter_port: of the host's adapter; None where it has none.
    """
    first = replicas[0]
    adapted = _adapted(role, replicas, adapter_port) if adapter_port else None
    own = _own(replicas) if TRAITS[first.engine].openai else None
    return RoleRoute(
        model=first.model,
        engine=first.engine,
        openai=own or adapted,
        framing=adapted,
        kserve=_kserve(replicas),
    )


def adapter_routes(role: str, replicas: Sequence[Placement]) -> dict[str, dict[str, Any]]:
    """Name → route in the adapter, as `gateway/config.py` reads it."""
    return {
        _name(role, number): {
            "engine": placement.engine,
            "base_url": placement.server.endpoint
            if placement.server
            else placement.instance.endpoint,
            "metrics_url": _metrics_url(placement),
            "model": _model(placement),
            "weights": weights_path(placement),
            **({"key": _key(placement)} if _key(placement) else {}),
        }
        for number, placement in enumerate(replicas)
    }


def key_files(replicas: Sequence[Placement]) -> dict[str, str]:
    """Name of a key → the file on the host that has it, for engines that ask for one."""
    return {key: each.instance.control_key_file for each in replicas if (key := _key(each))}


def opening(
    role: str, replicas: Sequence[Placement], adapter_port: int | None
) -> dict[str, dict[str, Any]]:
    """What the host is told to open a role's route: `route`, `adapter` and `key_files`."""
    return {
        "route": plain(role_route(role, replicas, adapter_port)),
        "adapter": adapter_routes(role, replicas) if adapter_port else {},
        "key_files": key_files(replicas) if adapter_port else {},
    }


def plain(route: RoleRoute) -> dict[str, Any]:
    """The route as JSON, without what is not given: Pulumi keeps no nulls."""
    given: dict[str, Any] = _given(asdict(route))
    return given


def _given(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _given(each) for key, each in value.items() if each is not None}
    return [_given(each) for each in value] if isinstance(value, list | tuple) else value


def _own(replicas: Sequence[Placement]) -> Endpoint:
    """OpenAI's API as the engine itself has it."""
    first = replicas[0]
    made = tuple(Replica(_address(each), _unit(each), each.claim_name) for each in replicas)
    return Endpoint(_model(first), renderer(first).HEALTH, made)


def _adapted(role: str, replicas: Sequence[Placement], port: int) -> Endpoint:
    """The adapter's, which knows a replica by the model's name; its health is its engine's.

    One that asks for a key answers no check of the gateway's: the adapter, which has it, is asked.
    """
    demo = replicas[0].demo
    several = len(replicas) > 1
    made = tuple(
        Replica(
            f"{LOOPBACK}:{port}",
            _unit(each),
            each.claim_name,
            model=f"{demo}/{_name(role, number)}" if several else None,
            health=f"/health/{demo}/{_name(role, number)}" if _key(each) else _health(each),
            checked_at=None if _key(each) else _address(each),
        )
        for number, each in enumerate(replicas)
    )
    return Endpoint(f"{demo}/{role}", "/health", made)


def _kserve(replicas: Sequence[Placement]) -> Endpoint | None:
    """Triton's own protocol, where Triton is what listens and asks for no key."""
    first = replicas[0]
    if first.server or any(_key(each) for each in replicas):
        return None
    made = tuple(Replica(_address(each), _unit(each), each.claim_name) for each in replicas)
    return Endpoint(first.entry, _health(first), made)


def _address(placement: Placement) -> str:
    server = placement.server
    return f"{LOOPBACK}:{server.port if server else placement.instance.declared.http_port}"


def _unit(placement: Placement) -> str:
    return f"{placement.served_by}.service"


def _health(placement: Placement) -> str:
    """A server's own word; in Triton the model's, since others may be loaded beside it."""
    if placement.server:
        return renderer(placement).HEALTH
    return f"/v2/models/{placement.entry}/ready"


def _model(placement: Placement) -> str:
    return renderer(placement).served_name(placement) if placement.server else placement.entry


def _metrics_url(placement: Placement) -> str:
    if placement.server:
        return f"{placement.server.endpoint}{renderer(placement).METRICS}"
    return placement.instance.metrics_endpoint


def _name(role: str, number: int) -> str:
    return f"{role}.{number}" if number else role


def _key(placement: Placement) -> str:
    """The name of the key that a load's server asks for; empty where it asks for none."""
    if placement.server or placement.instance.declared.keyed_apis != KEYED:
        return ""
    return f"control-{placement.instance.id}"
