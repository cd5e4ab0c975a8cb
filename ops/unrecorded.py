"""What a killed run was making when it was killed: on the host perhaps, and not in the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulumi.dynamic import ResourceProvider

from components.providers.claims import ClaimsProvider
from components.providers.demo_routes import DemoRoutesProvider
from components.providers.repository_entry import RepositoryEntryProvider
from components.providers.role_route import RoleRouteProvider
from components.providers.served_model import ServedModelProvider
from components.providers.triton_model import TritonModelProvider

PROVIDERS: Mapping[str, type[ResourceProvider]] = {
    "pulumi-python:dynamic/berth:Claims": ClaimsProvider,
    "pulumi-python:dynamic/berth:DemoRoutes": DemoRoutesProvider,
    "pulumi-python:dynamic/berth:RepositoryEntry": RepositoryEntryProvider,
    "pulumi-python:dynamic/berth:RoleRoute": RoleRouteProvider,
    "pulumi-python:dynamic/berth:ServedModel": ServedModelProvider,
    "pulumi-python:dynamic/berth:TritonModel": TritonModelProvider,
}


def unmake(state: Mapping[str, Any]) -> list[str]:
    """Delete what a run had begun to make and could not note; a destroy knows nothing of it.

    An `up` needs none of this: it makes the same again, and finds it there.

    Args:
        state: as `pulumi stack export` prints it.

    Returns:
        What it was, for the person.

    Raises:
        Refusal: the host cannot be reached, or a model does not go.
    """
    unmade = []
    for operation in reversed((state.get("deployment") or {}).get("pending_operations") or []):
        resource = operation["resource"]
        provider = PROVIDERS.get(resource["type"])
        if operation["type"] == "creating" and provider is not None:
            provider().delete(resource.get("id") or "", resource["inputs"])
            unmade.append(f"{resource['type'].rpartition(':')[2]} {_name(resource['urn'])}")
    return unmade


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]
