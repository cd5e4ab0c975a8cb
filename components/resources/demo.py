"""A demo's models: what they claim, their repository entries, and that they are loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_docker as docker

from components.providers import ledger
from components.providers.claims import Claims
from components.providers.fallback import ALWAYS
from components.providers.repository_entry import RepositoryEntry
from components.providers.served_model import ServedModel
from components.providers.triton_model import TritonModel
from components.renderers import entry, role_route
from components.renderers.host_guard import host_stack
from components.resources.access import HostAccess
from components.resources.demo_gateway import DemoGateway
from components.resources.gateway import HostGateway
from components.resources.instance import TritonInstance
from components.resources.model_server import CANARY_TIMEOUT_S, ModelServer, vacates
from components.resources.serving_image import ImageBuilder, ServingImage
from models.answering import Answering, answering
from models.claim_record import ClaimedGpu, ClaimRecord
from models.engine import TRAITS
from models.plan import Placement, Plan


class Demo(pulumi.ComponentResource):
    """The models that one demo's roles need, each on its instance."""

    states: Mapping[str, pulumi.Output[str]]
    """Placement's name → the model's state."""
    serving: Mapping[str, pulumi.Output[Answering]]
    """Role → what really answers to it, known once all that was to be loaded is."""
    gateway: DemoGateway
    claims: Mapping[str, Claims]
    """Host → all that is claimed there."""
    built: dict[str, dict[str, ServingImage]]
    """Host → reference → image that is built there."""

    def __init__(
        self,
        plan: Plan,
        access: Mapping[str, HostAccess],
        instances: Mapping[str, TritonInstance],
        gateways: Mapping[str, HostGateway],
        builder: ImageBuilder,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("berth:demo:Demo", str(plan.demo), None, opts)
        self._access = access
        self._instances = instances
        self._plan = plan
        self._dockers: dict[str, docker.Provider] = {}
        self._builder = builder
        self.built = {}
        self._entries: dict[tuple[str, str], list[RepositoryEntry]] = {}
        self.claims = {
            host: self._claimed(host, placements)
            for host in plan.hosts
            if (placements := plan.placements_on(host))
        }
        self._models: dict[str, TritonModel | ServedModel] = {}
        """Claim's name → the model; a fallback is declared after what it is instead of."""
        for placement in sorted(plan.placements, key=lambda each: bool(each.instead_of)):
            if placement.server:
                self._models[placement.claim_name] = self._server(placement).model
            else:
                model = self._model(placement, self._entry(placement))
                self._models[placement.claim_name] = model
        states = {each.name: self._models[each.claim_name].state for each in plan.placements}
        self.states = states
        self.serving = {role: self._serving(first) for role, first in plan.roles.items()}
        self.gateway = DemoGateway(
            plan,
            access,
            gateways,
            self._models,
            self.serving,
            pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"states": dict(states)})

    @property
    def models(self) -> list[TritonModel | ServedModel]:
        """All of them; whatever else a model needs, it depends on."""
        return list(self._models.values())

    def _serving(self, first: Placement) -> pulumi.Output[Answering]:
        fallback = self._plan.fallback_of(first)
        model = self._models[first.claim_name]
        instead = self._models[fallback.claim_name].state if fallback else ""
        known = pulumi.Output.all(model.state, model.reason, instead)
        return known.apply(lambda it: answering(first, fallback, it[0], it[1] or "", it[2]))

    def _fallback_claim(self, placement: Placement) -> Mapping[str, Any] | None:
        fallback = self._plan.fallback_of(placement)
        return ledger.declared(claim_record(fallback)) if fallback else None

    def _wanted(self, placement: Placement) -> pulumi.Input[str]:
        """A fallback is needed since the last attempt at what it is instead of."""
        if not placement.instead_of:
            return ALWAYS
        return self._models[placement.instead_of].attempt

    def _gives_back(self, placement: Placement) -> list[dict[str, Any]] | None:
        """The routes of a fallback's roles as they are while their own model serves."""
        gateway = placement.instance.host.gateway
        if not placement.instead_of or not gateway:
            return None
        port = gateway.adapter.port if gateway.adapter else None
        own = {role: self._plan.replicas_of(role) for role in placement.roles}
        return [
            {"demo": placement.demo, "role": role, **role_route.opening(role, replicas, port)}
            for role, replicas in sorted(own.items())
            if len(replicas) == 1
        ]

    def _claimed(self, host: str, placements: Sequence[Placement]) -> Claims:
        """All that the demo's models take of a host's GPUs; without it, nothing is written there.

        An instance that does not come up must not keep the other instances' models from loading,
        so only the host has to be set up before; and images that are built there have to be found
        good, because a claim may unload what is in its way.
        """
        served_by = self._instances.get(placements[0].instance.name)
        built = self._images_built(host, served_by).values()
        return Claims(
            host,
            ssh=self._access[host].ssh,
            host=host,
            holder=placements[0].owner,
            claims=[claim_record(placement) for placement in placements],
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[
                    *([served_by.setup] if served_by else []),
                    *(each.versions for each in built),
                ],
            ),
        )

    def _entry(self, placement: Placement) -> list[RepositoryEntry]:
        """One for each host that holds the model, however many of its instances do, its own entry
        first, then those of its parts."""
        host = placement.instance.host_name
        if (host, placement.entry) not in self._entries:
            whole = {placement.entry: entry.entry_files(placement), **entry.parts(placement)}
            self._entries[host, placement.entry] = [
                RepositoryEntry(
                    f"{host}/{name}",
                    ssh=self._access[host].ssh,
                    host=host,
                    repository=placement.instance.host.repository,
                    entry=name,
                    files=files,
                    weights=entry.needs(placement, name),
                    owner=placement.owner,
                    opts=pulumi.ResourceOptions(parent=self, depends_on=[self.claims[host]]),
                )
                for name, files in whole.items()
            ]
        return self._entries[host, placement.entry]

    def _server(self, placement: Placement) -> ModelServer:
        """A server of its own; only one that runs from a repository entry has one."""
        host = placement.instance.host_name
        served_by = self._instances.get(placement.instance.name)
        needed: list[pulumi.Resource] = []
        if TRAITS[placement.engine].entry:
            needed += self._entry(placement)
        return ModelServer(
            placement,
            self._access[host],
            self._docker(host, served_by),
            self._images_built(host, served_by),
            self._plan.stack,
            host_stack(self._plan.on_stack),
            self.claims[host],
            [*needed, *([served_by.setup] if served_by else [])],
            self._fallback_claim(placement),
            pulumi.ResourceOptions(parent=self),
        )

    def _docker(self, host: str, served_by: TritonInstance | None) -> docker.Provider:
        """The host's own where this stack set it up, else one for all servers of the demo there."""
        if served_by:
            return served_by.setup.docker_provider
        if host not in self._dockers:
            self._dockers[host] = self._access[host].docker(pulumi.ResourceOptions(parent=self))
        return self._dockers[host]

    def _images_built(self, host: str, served_by: TritonInstance | None) -> dict[str, ServingImage]:
        """All images that this stack builds there; those of instances are built in its set-up."""
        if host not in self.built:
            ready = served_by.setup.built if served_by else {}
            loads = self._plan.placements_on(host)
            wanted = {load.server.image for load in loads if load.server} - set(ready)
            if wanted & set(self._plan.builds):
                ready = ready | self._builder.on(
                    self._access[host],
                    self._docker(host, served_by),
                    wanted,
                    pulumi.ResourceOptions(
                        parent=self, depends_on=[served_by.setup] if served_by else None
                    ),
                )
            self.built[host] = ready
        return self.built[host]

    def _model(self, placement: Placement, written: Sequence[RepositoryEntry]) -> TritonModel:
        planned = placement.instance
        served_by = self._instances.get(planned.name)
        return TritonModel(
            f"{placement.entry}/{planned.name}",
            ssh=self._access[planned.host_name].ssh,
            host=planned.host_name,
            instance=planned.name,
            unit=planned.unit,
            http_port=planned.declared.http_port,
            control_key_file=planned.control_key_file,
            model=placement.entry,
            config_digest=entry.digest(placement),
            entry_revision=_revision(written),
            engine=placement.engine,
            # A demo on another stack's host sees a server made anew when it refreshes: the model is
            # gone there.
            container_id=served_by.incarnation if served_by else "",
            gpus=[gpu.uuid for gpu in planned.gpus],
            claim_mib=placement.claims[0].mib,
            owner=placement.claims[0].owner,
            holder=placement.owner,
            claim_name=placement.claim_name,
            load_timeout_s=placement.catalog.load_timeout_s,
            unload_timeout_s=placement.catalog.unload_timeout_s,
            canary_timeout_s=CANARY_TIMEOUT_S,
            metrics_port=planned.declared.metrics_port,
            roles=placement.roles,
            fallback=self._fallback_claim(placement),
            wanted=self._wanted(placement),
            gives_back=self._gives_back(placement),
            vacates=vacates(placement, self.claims[planned.host_name]),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[
                    self.claims[planned.host_name],
                    *written,
                    *([served_by] if served_by else []),
                ],
            ),
        )


def _revision(written: Sequence[RepositoryEntry]) -> pulumi.Output[str]:
    """Changes with every write of any of them."""
    own, *parts = (each.revision for each in written)
    return pulumi.Output.all(own, *parts).apply("+".join) if parts else own


def claim_record(placement: Placement) -> ClaimRecord:
    """A placement's claim as the ledger keeps it, with all that unloading the model takes."""
    instance = placement.instance
    return ClaimRecord(
        name=placement.claim_name,
        owner=placement.owner,
        stack=placement.owner.rpartition("/")[0],
        demo=placement.demo,
        roles=placement.roles,
        model=placement.model,
        entry=placement.entry,
        engine=placement.engine,
        instance=placement.served_by,
        http_port=placement.server.port if placement.server else instance.declared.http_port,
        control_key_file="" if placement.server else instance.control_key_file,
        gpus=tuple(ClaimedGpu(claim.gpu, claim.mib) for claim in placement.claims),
        shared=any(claim.shared for claim in placement.claims),
        instead_of=placement.instead_of,
    )
