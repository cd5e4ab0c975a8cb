"""The plan: everything that a stack's declarations mean, resolved, or refused.

Plain values only, so that preview shows them and policies can judge them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from models.build import PlannedBuild
from models.catalog import CatalogModel
from models.engine import TRAITS, Engine
from models.host import Gpu, Host
from models.instance import Instance
from models.overlap import Claim, Room

SERVERS = "/etc/berth/servers"
"""Directory on the host with an environment file for each server of one model's own."""


@dataclass(frozen=True)
class PlannedInstance:
    """An instance with its host and its GPUs looked up."""

    name: str
    declared: Instance
    host_name: str
    host: Host
    gpus: tuple[Gpu, ...]

    @property
    def id(self) -> str:
        """What stands after the `@`."""
        return self.name.partition("@")[2]

    @property
    def unit(self) -> str:
        """The systemd unit."""
        return f"{self.name}.service"

    @property
    def endpoint(self) -> str:
        """KServe v2 over HTTP, on the host's loopback."""
        return f"http://127.0.0.1:{self.declared.http_port}"

    @property
    def metrics_endpoint(self) -> str:
        """Prometheus metrics, on the host's loopback."""
        return f"http://127.0.0.1:{self.declared.metrics_port}/metrics"

    @property
    def control_key_file(self) -> str:
        """File on the host with the key of the control API; root's alone."""
        return f"/etc/berth/instances/{self.id}.key"

    @property
    def environment_file(self) -> str:
        """File on the host from which the unit learns its container's name."""
        return f"/etc/berth/instances/{self.id}.env"


@dataclass(frozen=True)
class PlannedServer:
    """A server of one model's own, for life, on the GPUs of an instance."""

    name: str
    """`<demo>-<role>`, by the first of its roles, with the instance's id behind for a further
    replica; its unit without `.service`."""
    image: str
    port: int
    """On the host's loopback."""

    @property
    def unit(self) -> str:
        """The systemd unit."""
        return f"{self.name}.service"

    @property
    def endpoint(self) -> str:
        """OpenAI's API over HTTP, on the host's loopback."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment_file(self) -> str:
        """File on the host from which the unit learns its container's name."""
        return f"{SERVERS}/{self.name}.env"


@dataclass(frozen=True)
class Placement:
    """One load: a catalog model held by an instance, or a server of its own, for a demo's roles."""

    demo: str
    owner: str
    """`project/stack/demo`."""
    model: str
    catalog: CatalogModel
    instance: PlannedInstance
    """It has the GPUs, whether or not it is what serves."""
    roles: tuple[str, ...]
    engine: Engine = "triton-vllm"
    server: PlannedServer | None = None
    """Set for an engine that holds one model for life."""
    instead_of: str = ""
    """For a fallback: the claim's name of the load whose place it takes on the day it fails."""

    @property
    def served_by(self) -> str:
        """The unit that holds it, without `.service`."""
        return self.server.name if self.server else self.instance.name

    @property
    def name(self) -> str:
        """Its name in outputs and messages."""
        return f"{self.model}/{self.served_by}"

    @property
    def entry(self) -> str:
        """Name of the repository entry, so Triton's model name; a demo writes none but its own."""
        return f"{self.demo}.{self.model}"

    @property
    def claim_name(self) -> str:
        """Its claim's name in the host's ledger."""
        return f"{self.owner.rpartition('/')[0]}/{self.entry}/{self.served_by}"

    @property
    def gpu_memory_utilization(self) -> float:
        """The share of its GPUs that its engine is told to take (vLLM's argument)."""
        return self.catalog.share_of(min(gpu.cuda_mib for gpu in self.instance.gpus))

    @property
    def endpoint(self) -> str:
        """The model itself, on its host's loopback."""
        if self.server:
            return f"{self.server.endpoint}/v1"
        return f"{self.instance.endpoint}/v2/models/{self.entry}"

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What it takes of each of its GPUs: the share that its engine is told to take, or all."""
        owner = f"{self.owner}: {'+'.join(self.roles)} ({self.model} on {self.served_by})"
        owner += ", the fallback" if self.instead_of else ""
        return tuple(
            Claim(
                host=self.instance.host_name,
                gpu=gpu.uuid,
                name=self.claim_name,
                owner=owner,
                mib=self._mib_of(gpu),
                shared=self.catalog.shared_mib is not None,
                instead_of=self.instead_of,
            )
            for gpu in self.instance.gpus
        )

    def _mib_of(self, gpu: Gpu) -> int:
        if not TRAITS[self.engine].shares:
            return gpu.cuda_mib
        share = math.ceil(gpu.cuda_mib * self.catalog.gpu_memory_utilization)
        return self.catalog.shared_mib or share


@dataclass(frozen=True)
class Plan:
    """What a stack owns, and what of other stacks it stands on."""

    stack: str
    hosts: Mapping[str, Host]
    """Every host that this stack touches."""
    instances: tuple[PlannedInstance, ...]
    """Every instance that it knows, its own or its host stack's."""
    on_stack: str
    """The stack that sets its hosts up; its own name where it does so itself."""
    owns_hosts: bool
    """Whether hosts and instances are this stack's to bring up."""
    demo: str | None
    keys: tuple[str, ...]
    """Names of the demo's keys."""
    connections_per_key: int | None
    """The demo's own limit at a gateway."""
    placements: tuple[Placement, ...]
    roles: Mapping[str, Placement]
    """Role → its load; of several replicas the one on the role's own instance."""
    inventory: Literal["live", "recorded"]
    """Where a preview learns of the hosts."""
    catalog: Mapping[str, CatalogModel]
    """Every model of the catalog that can be read, by name."""
    builds: Mapping[str, PlannedBuild] = field(default_factory=dict)
    """Image reference → the build that it is of."""

    def replicas_of(self, role: str) -> tuple[Placement, ...]:
        """Every load that serves a role, its own first; what only stands by is none of them."""
        first = self.roles[role]
        further = (each for each in self.placements if role in each.roles and not each.instead_of)
        return (first, *(each for each in further if each is not first))

    def instances_on(self, host: str) -> tuple[PlannedInstance, ...]:
        """The instances that run on a host."""
        return tuple(instance for instance in self.instances if instance.host_name == host)

    def placements_on(self, host: str) -> tuple[Placement, ...]:
        """The loads that a host carries."""
        return tuple(load for load in self.placements if load.instance.host_name == host)

    def fallback_of(self, placement: Placement) -> Placement | None:
        """What serves a load's roles where it fails itself."""
        return next((p for p in self.placements if p.instead_of == placement.claim_name), None)

    @property
    def rooms(self) -> dict[tuple[str, str], Room]:
        """What each GPU has to give as declared: nobody else on it."""
        return {
            (name, gpu.uuid): Room(gpu.index, gpu.cuda_mib)
            for name, host in self.hosts.items()
            for gpu in host.gpus
        }

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of all placements."""
        return tuple(claim for placement in self.placements for claim in placement.claims)
