"""The plan: everything that a stack's declarations mean, resolved, or refused.

Plain values only, so that preview shows them and policies can judge them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from models.catalog import CatalogModel
from models.host import Gpu, Host
from models.instance import Instance
from models.overlap import Claim, Room


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
class Placement:
    """One load: a catalog model held by an instance for a demo's roles."""

    demo: str
    owner: str
    """`project/stack/demo`."""
    model: str
    catalog: CatalogModel
    instance: PlannedInstance
    roles: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in outputs and messages."""
        return f"{self.model}/{self.instance.name}"

    @property
    def entry(self) -> str:
        """Name of the repository entry, so Triton's model name; a demo writes none but its own."""
        return f"{self.demo}.{self.model}"

    @property
    def claim_name(self) -> str:
        """Its claim's name in the host's ledger."""
        return f"{self.owner.rpartition('/')[0]}/{self.entry}/{self.instance.name}"

    @property
    def gpu_memory_utilization(self) -> float:
        """The share of its GPUs that its engine is told to take (vLLM's argument)."""
        return self.catalog.share_of(min(gpu.cuda_mib for gpu in self.instance.gpus))

    @property
    def endpoint(self) -> str:
        """The model itself, on its host's loopback."""
        return f"{self.instance.endpoint}/v2/models/{self.entry}"

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What it takes of each of its GPUs: the share that its engine is told to take."""
        owner = f"{self.owner}: {'+'.join(self.roles)} ({self.model} on {self.instance.name})"
        return tuple(
            Claim(
                host=self.instance.host_name,
                gpu=gpu.uuid,
                name=self.claim_name,
                owner=owner,
                mib=self.catalog.shared_mib
                or math.ceil(gpu.cuda_mib * self.catalog.gpu_memory_utilization),
                shared=self.catalog.shared_mib is not None,
            )
            for gpu in self.instance.gpus
        )


@dataclass(frozen=True)
class Plan:
    """What a stack owns, and what of other stacks it stands on."""

    stack: str
    hosts: Mapping[str, Host]
    """Every host that this stack touches."""
    instances: tuple[PlannedInstance, ...]
    """Every instance that it knows, its own or its host stack's."""
    owns_hosts: bool
    """Whether hosts and instances are this stack's to bring up."""
    demo: str | None
    placements: tuple[Placement, ...]
    roles: Mapping[str, Placement]
    inventory: Literal["live", "recorded"]
    """Where a preview learns of the hosts."""
    catalog: Mapping[str, CatalogModel]
    """Every model of the catalog that can be read, by name."""

    def instances_on(self, host: str) -> tuple[PlannedInstance, ...]:
        """The instances that run on a host."""
        return tuple(instance for instance in self.instances if instance.host_name == host)

    def placements_on(self, host: str) -> tuple[Placement, ...]:
        """The loads that a host carries."""
        return tuple(load for load in self.placements if load.instance.host_name == host)

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
