"""A demo at its hosts' gateways: its keys, and a route for each role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.providers.demo_key import DemoKey
from components.providers.demo_routes import DemoRoutes
from components.providers.role_route import RoleRoute
from components.providers.served_model import ServedModel
from components.providers.triton_model import TritonModel
from components.renderers import role_route
from components.resources.access import HostAccess
from components.resources.failed import Settling, any_failed, there, value_of
from components.resources.gateway import HostGateway
from models.answering import Answering
from models.gateway import Gateway
from models.plan import Placement, Plan

Models = Mapping[str, TritonModel | ServedModel]


class DemoGateway(pulumi.ComponentResource):
    """What clients need to reach a demo's roles; nothing on hosts that have no gateway."""

    keys: Mapping[str, pulumi.Output[str]]
    """Name → the key; secrets."""
    urls: Mapping[str, str]
    """Role → base URL of OpenAI's API."""
    states: Mapping[str, pulumi.Output[str]]
    """Role → whether its route is open."""
    resources: list[Settling]
    """All that takes something away from the hosts when it is deleted."""

    def __init__(
        self,
        plan: Plan,
        access: Mapping[str, HostAccess],
        gateways: Mapping[str, HostGateway],
        models: Models,
        serving: Mapping[str, pulumi.Output[Answering]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare them.

        Args:
            plan: with a demo.
            access: how its hosts are reached.
            gateways: of hosts that this stack sets up itself.
            models: claim's name → what is loaded.
            serving: role → what answers to it.
        """
        super().__init__("berth:demo:DemoGateway", str(plan.demo), None, opts)
        self._plan, self._access, self._gateways, self._models = plan, access, gateways, models
        reached = {name: gateway for name, host in plan.hosts.items() if (gateway := host.gateway)}
        made = {name: self._key(name) for name in plan.keys} if reached else {}
        self.keys = {name: key.key for name, key in made.items()}
        self._known = {host: self._demo(host, reached[host], made) for host in reached}
        urls: dict[str, str] = {}
        routes: dict[str, RoleRoute] = {}
        for role, first in plan.roles.items():
            host = first.instance.host_name
            if host in reached:
                urls[role] = f"{reached[host].reached_at(access[host].host.ssh.address)}/v1"
                routes[role] = self._route(role, reached[host], serving[role])
        self.urls = urls
        self.states = {role: route.state for role, route in routes.items()}
        self.resources = [*self._known.values(), *routes.values()]
        self.register_outputs({"urls": urls})

    def _key(self, name: str) -> DemoKey:
        return DemoKey(f"{self._plan.demo}/{name}", name, pulumi.ResourceOptions(parent=self))

    def _demo(self, host: str, gateway: Gateway, keys: Mapping[str, DemoKey]) -> DemoRoutes:
        needed = [self._gateways[host]] if host in self._gateways else []
        roles = {
            role: {
                "model": first.model,
                "engine": first.engine,
                "loads": [each.claim_name for each in self._all_of(role)],
            }
            for role, first in self._plan.roles.items()
            if first.instance.host_name == host
        }
        return DemoRoutes(
            f"{host}/{self._plan.demo}",
            ssh=self._access[host].ssh,
            host=host,
            demo=str(self._plan.demo),
            keys=[{"name": name, "sha256": key.sha256} for name, key in keys.items()],
            connections_per_key=self._plan.connections_per_key,
            drain_s=gateway.drain_s,
            roles=roles,
            opts=pulumi.ResourceOptions(parent=self, depends_on=needed),
        )

    def _route(self, role: str, gateway: Gateway, serving: pulumi.Output[Answering]) -> RoleRoute:
        """Opened once what may serve it does, or has failed and something else does."""
        host = self._plan.roles[role].instance.host_name
        needed = [self._models[each.claim_name] for each in self._all_of(role)]
        port = gateway.adapter.port if gateway.adapter else None
        if pulumi.runtime.is_dry_run():
            since = pulumi.Output.all(*(model.since for model in needed))
            values = pulumi.Output.all(serving, since).apply(
                lambda known: self._inputs(role, known[0], known[1], None, port)
            )
        else:
            # Without dependencies on what may have failed (`failed.py`).
            values = pulumi.Output.from_input(self._settled(role, serving, port))
        return RoleRoute(
            f"{host}/{self._plan.demo}/{role}",
            ssh=self._access[host].ssh,
            host=host,
            demo=str(self._plan.demo),
            role=role,
            route=values.apply(lambda it: it["route"]),
            adapter=values.apply(lambda it: it["adapter"]),
            key_files=values.apply(lambda it: it["key_files"]),
            since=values.apply(lambda it: it["since"]),
            hold=values.apply(lambda it: it["hold"]),
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=there([], [self._known[host], *needed])
            ),
        )

    async def _settled(
        self, role: str, serving: pulumi.Output[Answering], port: int | None
    ) -> dict[str, Any]:
        """The resource's inputs once its models are loaded, or have failed.

        The route is left as it is where that keeps anything from serving. Of several replicas those
        that serve are enough.
        """
        replicas = self._plan.replicas_of(role)
        failed = [
            each for each in self._all_of(role) if await any_failed([self._models[each.claim_name]])
        ]
        up = tuple(each for each in replicas if each not in failed)
        if failed and (len(replicas) == 1 or not up):
            return {"route": {}, "adapter": {}, "key_files": {}, "since": [], "hold": True}
        of = up if len(replicas) > 1 else self._all_of(role)
        since = [await value_of(self._models[each.claim_name].since) for each in of]
        known = None if len(replicas) > 1 else await value_of(serving)
        return self._inputs(role, known, since, up, port)

    def _inputs(
        self,
        role: str,
        known: Answering | None,
        since: Sequence[str],
        up: Sequence[Placement] | None,
        port: int | None,
    ) -> dict[str, Any]:
        """What a route is made from, whoever serves.

        Args:
            known: what answers to the role; of several replicas each does.
            since: when each of its models came to serve.
            up: those of its replicas that serve; None for all.
            port: of the host's adapter.
        """
        first = self._plan.roles[role]
        fallback = self._plan.fallback_of(first)
        stands_in = known is not None and known["placement"] == "fallback"
        served_by = self._plan.replicas_of(role) if up is None else up
        if fallback and stands_in:
            served_by = (fallback,)
        made = role_route.opening(role, served_by, port)
        if fallback and stands_in:
            made["route"] |= {"model": first.model, "fallback": fallback.model}
        return {**made, "since": list(since), "hold": False}

    def _all_of(self, role: str) -> list[Placement]:
        """Every load that may serve a role."""
        fallback = self._plan.fallback_of(self._plan.roles[role])
        return [*self._plan.replicas_of(role), *([fallback] if fallback else [])]
