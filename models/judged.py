"""The subject of all rules: a stack as plain values, with what is known of its hosts.

The program makes it from its plan, before it declares anything; the policy pack makes it from the
resources that the engine shows. So one rule guards both, and none depends on an unknown value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from models.build import BuiltImage
from models.overlap import Claim, Foreign, Room
from models.releases.tables import NO_TABLES, Releases
from models.weights import Weights


@dataclass(frozen=True)
class JudgedGpu:
    """A GPU as it is declared, and who else is on it."""

    uuid: str
    index: int
    memory_mib: int
    cuda_mib: int
    """What CUDA can give of it, in MiB."""
    foreign: tuple[Foreign, ...] = ()
    """Processes that hold memory and are not Berth's."""


@dataclass(frozen=True)
class JudgedHost:
    """A host as it is declared, and as its inventory says that it is."""

    name: str
    gpus: tuple[JudgedGpu, ...]
    image_references: str = "digest"
    data_dir: str = "/data/triton"
    driver: str = ""
    """Version of the NVIDIA driver; empty: not known."""
    found: Mapping[str, int] | None = None
    """UUID → index of the GPUs that are really there; None: not known."""
    others: tuple[Claim, ...] = ()
    """Claims of other stacks and of people."""
    others_roles: Mapping[str, str] = field(default_factory=dict)
    """Role of another stack's demo → its owner."""
    others_demos: Mapping[str, str] = field(default_factory=dict)
    """Demo of another stack → that stack."""
    others_units: Mapping[str, str] = field(default_factory=dict)
    """Unit of another stack's server of one model's own, without `.service` → its owner."""
    taken_ports: Mapping[int, str] = field(default_factory=dict)
    """Port that is not this stack's → who has it."""

    @property
    def weights_dir(self) -> str:
        """Directory of all weights."""
        return f"{self.data_dir}/weights"

    @property
    def repository(self) -> str:
        """The model repository."""
        return f"{self.data_dir}/models"


@dataclass(frozen=True)
class Published:
    """A port of a container, open on the host."""

    address: str
    port: int
    """On the host."""
    inside: int
    """In the container."""


@dataclass(frozen=True)
class Mounted:
    """A directory or file of the host in a container."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True)
class JudgedInstance:
    """A server's container and unit."""

    name: str
    host: str
    gpus: tuple[str, ...]
    """UUIDs, as the container asks for them."""
    image: str
    """Reference."""
    published: tuple[Published, ...] = ()
    keyed: str = "control"
    """Which APIs ask for a key: `control`, `all`, or none where it is empty."""
    mounts: tuple[Mounted, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    """Text of its systemd unit."""
    network: str = "bridge"
    """Docker's network mode."""
    owned: bool = True
    """Whether it is this stack's to bring up; another's is judged with that other stack."""
    role: str = ""
    """For a server of one model's own: the role that it is named after."""

    @property
    def at(self) -> str:
        """Where it is declared."""
        return f"berth:demo.roles.{self.role}" if self.role else f"berth:instances.{self.name}"


@dataclass(frozen=True)
class JudgedService:
    """What a host runs beside its instances: its gateway, and the adapter.

    The gateway asks for a key whatever is called, and the adapter refuses to listen beyond
    loopback, so neither has to be judged for what it opens.
    """

    name: str
    """Its unit's, without `.service`."""
    host: str
    port: int
    unit: str
    """Text of its systemd unit."""
    image: str = ""
    """Reference; empty where it is no container."""

    @property
    def at(self) -> str:
        """Where it is declared."""
        return f"berth:hosts.{self.host}.gateway{'.adapter' if self.image else ''}"


@dataclass(frozen=True)
class JudgedModel:
    """One load: a model held by an instance for its roles."""

    name: str
    """Its claim's name."""
    owner: str
    """`project/stack/demo`."""
    demo: str
    model: str
    """Name in the catalog."""
    entry: str
    """Name of the repository entry."""
    host: str
    instance: str
    roles: tuple[str, ...]
    claims: tuple[Claim, ...]
    config_pbtxt: str
    engine_args: Mapping[str, object]
    """Content of `model.json`."""
    image: str = ""
    """Of its instance; empty: not known."""
    weights: Weights | None = None
    """None: nobody has read them."""
    engine: str = "triton-vllm"
    """What serves it: a name of `models.engine`."""
    instead_of: str = ""
    """For a fallback: the claim's name of the model whose place it takes."""

    @property
    def file(self) -> str:
        """Where its catalog entry is."""
        return f"catalog/{self.model or self.entry}.yaml"

    @property
    def at(self) -> str:
        """Where it is asked for."""
        below = ".fallback" if self.instead_of else ""
        return f"berth:demo.roles.{self.roles[0]}{below}" if self.roles else self.file

    @property
    def weights_name(self) -> str:
        """Directory of its weights, without what lies above it."""
        return str(self.engine_args.get("model", "")).rstrip("/").rpartition("/")[2]


@dataclass(frozen=True)
class Judged:
    """A stack."""

    stack: str
    """`project/stack`."""
    hosts: Mapping[str, JudgedHost] = field(default_factory=dict)
    instances: tuple[JudgedInstance, ...] = ()
    models: tuple[JudgedModel, ...] = ()
    services: tuple[JudgedService, ...] = ()
    """Those that are this stack's to bring up."""
    builds: Mapping[str, BuiltImage] = field(default_factory=dict)
    """Image reference → the build that it is of."""
    plain_config: Mapping[str, object] = field(default_factory=dict)
    """Path → scalar: what a user wrote in clear."""
    releases: Releases = field(default=NO_TABLES, compare=False, repr=False)
    """What images hold, as far as the tables say."""

    @property
    def own_instances(self) -> Iterator[JudgedInstance]:
        """Those that are this stack's to bring up."""
        return (instance for instance in self.instances if instance.owned)

    def instance(self, name: str, host: str) -> JudgedInstance | None:
        """An instance by name."""
        return self._by_name.get((name, host))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], JudgedInstance]:
        # Sorted, so that of two of one name it is always the same, in whatever order they are.
        return {(each.name, each.host): each for each in sorted(self.instances, key=repr)}

    @cached_property
    def _by_uuid(self) -> dict[str, dict[str, JudgedGpu]]:
        return {name: {gpu.uuid: gpu for gpu in host.gpus} for name, host in self.hosts.items()}

    def gpus_of(self, model: JudgedModel) -> tuple[JudgedGpu, ...] | None:
        """The GPUs of a model's instance, in its order; None if one is not known."""
        return self._gpus_of.get((model.instance, model.host))

    @cached_property
    def _gpus_of(self) -> dict[tuple[str, str], tuple[JudgedGpu, ...]]:
        """Many models ask for the same instance's."""
        found = {}
        for name, instance in self._by_name.items():
            known = self._by_uuid.get(instance.host, {})
            if all(uuid in known for uuid in instance.gpus):
                found[name] = tuple(known[uuid] for uuid in instance.gpus)
        return found

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of all its models."""
        return tuple(claim for model in self.models for claim in model.claims)

    @property
    def rooms(self) -> dict[tuple[str, str], Room]:
        """(host, UUID) → what that GPU has to give."""
        return {
            (host.name, gpu.uuid): Room(gpu.index, gpu.cuda_mib, gpu.foreign)
            for host in self.hosts.values()
            for gpu in host.gpus
        }
