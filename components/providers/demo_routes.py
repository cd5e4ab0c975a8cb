"""What a host's gateway knows of a demo beside its routes: its keys, and which roles it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.providers import gateway_routes
from components.providers.plain_refusals import BerthProvider, same
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host

_REPLACES = ("host", "demo")
_OTHERS = ("ssh", "keys", "connections_per_key", "drain_s", "roles")
_INPUTS = (*_REPLACES, *_OTHERS)
_KNOWN = {"state": "known"}


class DemoRoutesProvider(BerthProvider):
    """Makes a demo known to a gateway; its roles are not loaded until their routes open."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer. Another host or demo is another resource, the new one made first."""
        changed = [key for key in _INPUTS if not same(_olds.get(key), _news.get(key))]
        replaces = [key for key in changed if key in _REPLACES]
        return DiffResult(changes=bool(changed), replaces=replaces)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Make it known; a role that is open there stays open.

        Raises:
            Refusal: the host cannot be reached, has no gateway, or that cannot take it.
        """
        payload = {
            "demo": props["demo"],
            "keys": props["keys"],
            "connections_per_key": _number(props.get("connections_per_key")),
            "drain_s": _number(props["drain_s"]),
            "roles": props["roles"],
        }

        async def work(session: Session) -> None:
            await gateway_routes.change(session, "declare", payload)

        on_host(props["ssh"], work)
        return CreateResult(f"{props['host']}:{props['demo']}", _inputs(props) | _KNOWN)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """As `create`.

        Raises:
            Refusal: as `create`.
        """
        return UpdateResult(self.create(_news).outs)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """What the host has; other keys than declared come back, so that they show as drift.

        Raises:
            Refusal: the host cannot be reached.
        """
        found = on_host(
            props["ssh"], lambda session: gateway_routes.show(session, str(props["demo"]))
        )
        if not found["there"]:
            return ReadResult("", {})
        inputs = _inputs(props)
        routes = found["routes"]
        inputs["keys"] = routes.get("keys", [])
        inputs["connections_per_key"] = routes.get("connections_per_key")
        known = set(routes.get("roles", {}))
        inputs["roles"] = {role: it for role, it in props["roles"].items() if role in known}
        return ReadResult(id_, inputs | _KNOWN, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Everything of the demo gone from the gateway; other demos notice nothing.

        Raises:
            Refusal: the host cannot be reached.
        """

        async def work(session: Session) -> None:
            await gateway_routes.change(session, "remove", {"demo": _props["demo"], "role": None})

        on_host(_props["ssh"], work)


class DemoRoutes(Resource, module="berth", name="DemoRoutes"):
    """A demo in one host's gateway."""

    state: pulumi.Output[str]
    """`known`."""

    def __init__(
        self,
        name: str,
        *,
        ssh: pulumi.Input[Mapping[str, Any]],
        host: str,
        demo: str,
        keys: Sequence[pulumi.Input[Mapping[str, pulumi.Input[str]]]],
        connections_per_key: int | None,
        drain_s: int,
        roles: Mapping[str, Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare a demo.

        Args:
            ssh: how the host is reached: `address`, `port`, `user`, `private_key_file` (or None)
                and `host_key`.
            keys: `name` and `sha256` of each of its keys.
            connections_per_key: its own limit of requests under way; None: the gateway's.
            drain_s: how long requests are waited for before their model goes, in seconds.
            roles: role → `model`, `engine`, and `loads`: names of the claims that it waits for.
        """
        properties = {
            "ssh": ssh,
            "host": host,
            "demo": demo,
            "keys": list(keys),
            "connections_per_key": connections_per_key,
            "drain_s": drain_s,
            "roles": {role: dict(about) for role, about in roles.items()},
            "state": None,
        }
        super().__init__(DemoRoutesProvider(), name, properties, opts)


def _inputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: props[key] for key in _INPUTS if key in props}


def _number(value: float | None) -> int | None:
    """Pulumi makes every number a float."""
    return None if value is None else int(value)
