"""A role's route as a resource: opened once what it leads to serves, and gone when deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.providers import gateway_routes
from components.providers.plain_refusals import BerthProvider, same
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host

_REPLACES = ("host", "demo", "role")
_OTHERS = ("ssh", "route", "adapter", "key_files", "since", "hold")
_INPUTS = (*_REPLACES, *_OTHERS)
OPEN, CLOSED = "open", "closed"


class RoleRouteProvider(BerthProvider):
    """Opens a route when its models serve. Whoever ends a model closes what leads to it before."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer. Another host or name is another route, the new one opened first.

        One that is held is left as it is: what it is to lead to has failed in this run.
        """
        if _news.get("hold"):
            return DiffResult(changes=False)
        changed = [key for key in _INPUTS if not same(_olds.get(key), _news.get(key))]
        replaces = [key for key in changed if key in _REPLACES]
        settled = _olds.get("state") == OPEN
        return DiffResult(changes=bool(changed) or not settled, replaces=replaces)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Open it: clients reach its models when this returns. One that is held is not opened.

        Raises:
            Refusal: the host cannot be reached, has no gateway, or that cannot take it.
        """
        id_ = f"{props['host']}:{props['demo']}/{props['role']}"
        if props.get("hold"):
            return CreateResult(id_, _inputs(props) | {"state": CLOSED})

        async def work(session: Session) -> None:
            await open_route(session, props)

        on_host(props["ssh"], work)
        return CreateResult(id_, _inputs(props) | {"state": OPEN})

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """As `create`.

        Raises:
            Refusal: as `create`; the route then is as it was.
        """
        return UpdateResult(self.create(_news).outs)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """What the host has; another route than declared comes back, so that it shows as drift.

        Raises:
            Refusal: the host cannot be reached.
        """
        found = on_host(
            props["ssh"], lambda session: gateway_routes.show(session, str(props["demo"]))
        )
        route = found["routes"].get("roles", {}).get(props["role"])
        if route is None or route.get("state") != "serving":
            # It is to be opened, not made: the name is the demo's in any case.
            return ReadResult(id_, _inputs(props) | {"state": CLOSED}, _inputs(props))
        inputs = _inputs(props)
        shut, inputs["route"] = opened(route)
        inputs["adapter"] = {
            name: found["adapter"][name] for name in props["adapter"] if name in found["adapter"]
        }
        state = CLOSED if shut else OPEN
        return ReadResult(id_, inputs | {"state": state}, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """The name is unknown to clients when this returns; answers under way are waited for.

        Raises:
            Refusal: the host cannot be reached.
        """
        payload = {"demo": _props["demo"], "role": _props["role"]}

        async def work(session: Session) -> None:
            await gateway_routes.change(session, "remove", payload)

        on_host(_props["ssh"], work)


class RoleRoute(Resource, module="berth", name="RoleRoute"):
    """What a role's name leads to in one host's gateway."""

    state: pulumi.Output[str]
    """`open`, or `closed` while a model that it leads to was ended and not loaded again."""

    def __init__(
        self,
        name: str,
        *,
        ssh: pulumi.Input[Mapping[str, Any]],
        host: str,
        demo: str,
        role: str,
        route: pulumi.Input[Mapping[str, Any]],
        adapter: pulumi.Input[Mapping[str, Any]],
        key_files: pulumi.Input[Mapping[str, str]],
        since: pulumi.Input[Sequence[pulumi.Input[str]]],
        hold: pulumi.Input[bool] = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare a route.

        Args:
            ssh: how the host is reached: `address`, `port`, `user`, `private_key_file` (or None)
                and `host_key`.
            route: `models.gateway.RoleRoute` as plain values.
            adapter: name → its route in the adapter.
            key_files: name of an engine's key → file on the host that has it.
            since: when each of its models came to serve: another time, and the route is opened
                again.
            hold: leave what is there, whatever the others say.
        """
        properties = {
            "ssh": ssh,
            "host": host,
            "demo": demo,
            "role": role,
            "route": route,
            "adapter": adapter,
            "key_files": key_files,
            "since": since,
            "hold": hold,
            "state": None,
        }
        super().__init__(RoleRouteProvider(), name, properties, opts)


async def open_route(session: Session, about: Mapping[str, Any]) -> None:
    """Lead a role's clients where its route says; answers under way elsewhere are waited for.

    Args:
        about: `demo`, `role`, and its `route`, `adapter` and `key_files` as for `RoleRoute`.

    Raises:
        Refusal: the host has no gateway, or that cannot take it.
    """
    payload = {
        "demo": about["demo"],
        "role": about["role"],
        "route": whole(about["route"]),
        "adapter": whole(about["adapter"]),
        "key_files": about["key_files"],
    }
    await gateway_routes.change(session, "put", payload)


def opened(route: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether any replica of a route is closed, and the route with all of them open."""
    shut = False

    def clean(value: Any) -> Any:
        nonlocal shut
        if isinstance(value, Mapping):
            shut = shut or bool(value.get("closed"))
            return {key: "" if key == "closed" else clean(each) for key, each in value.items()}
        return [clean(each) for each in value] if isinstance(value, list | tuple) else value

    return shut, clean(route)


def whole(value: Any) -> Any:
    """Pulumi makes every number a float."""
    if isinstance(value, Mapping):
        return {key: whole(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _inputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: props[key] for key in _INPUTS if key in props}
