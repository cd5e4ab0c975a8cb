"""What a host is and holds at one moment: asked live, or recorded in a file that is reviewed."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from models.claim_record import ClaimRecord
from models.host import Host
from models.overlap import Claim, Foreign, Room
from models.weights import Weights

SCHEMA_VERSION = 1


class Facts(BaseModel):
    """Read from a host, so what is not known here is passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)


class ListedGpu(Facts):
    """A GPU as nvidia-smi lists it. Memory in MiB."""

    uuid: str
    index: int
    name: str
    memory_mib: int
    """`memory.total`."""
    reserved_mib: int
    """`memory.reserved`: what the driver keeps for itself."""
    used_mib: int
    """`memory.used`, by whomever."""


class GpuFacts(Facts):
    """What nvidia-smi lists."""

    status: int
    """Its exit status; 127 where it is not installed."""
    said: str
    """What it said where it listed no GPU."""
    found: tuple[ListedGpu, ...]


class GpuProcess(Facts):
    """A process that holds GPU memory."""

    gpu: str
    """UUID."""
    pid: int
    name: str
    mib: int
    """What it holds, in MiB; 0 where nvidia-smi does not say."""
    instance: str = ""
    """The instance that it runs in; empty where it is not Berth's."""


class PublishedPort(Facts):
    """A port of a container, open on the host while it runs."""

    address: str
    """The host's."""
    port: int
    """On the host."""
    inside: int
    """In the container."""


class ContainerFacts(Facts):
    """One of Berth's own containers, running or not."""

    name: str
    instance: str = ""
    stack: str = ""
    image: str = ""
    state: str = ""
    ports: tuple[PublishedPort, ...] = ()


class DockerFacts(Facts):
    """Docker, and how it can hand out GPUs."""

    installed: bool
    version: str
    """The daemon's; empty where it does not answer."""
    said: str
    """What it said instead."""
    user_may: bool
    """Whether the login user may use it."""
    hook: bool
    """Whether the NVIDIA container runtime hook is there."""
    cdi: bool
    """Whether GPUs are described for CDI."""
    nvidia_runtime: str = ""
    """Version of the NVIDIA container toolkit."""
    containers: tuple[ContainerFacts, ...]


class ServiceFacts(Facts):
    """What the host runs beside its instances: its gateway, or the adapter."""

    port: int
    stack: str
    """Who set it up."""


class ImageFacts(Facts):
    """An image that was built there, and has been asked what it holds."""

    reference: str
    """Name and tag."""
    id: str
    versions: dict[str, str]
    """Package → version."""


class Inventory(Facts):
    """What `host/inventory.py` prints. Memory and disk in MiB."""

    schema_version: int = SCHEMA_VERSION
    taken_at: str
    """UTC, ISO 8601 to the second."""
    berth_host: str = ""
    """Version of the berth-host that is installed there; empty where none is."""
    systemd: bool
    driver: str = ""
    """The NVIDIA driver's version."""
    gpus: GpuFacts
    processes: tuple[GpuProcess, ...]
    docker: DockerFacts
    images: tuple[ImageFacts, ...] = ()
    ports: tuple[int, ...]
    """TCP ports that something listens on."""
    units: dict[str, str]
    """Berth's units → their states."""
    services: dict[str, ServiceFacts] = {}
    """Unit of the gateway, and of the adapter → who has it, and its port."""
    weights: dict[str, Weights]
    """Directory's name → what it holds."""
    claims: tuple[ClaimRecord, ...] = ()
    """What stands in the ledger."""
    ledger_trouble: str = ""
    """Why the ledger could not be read; then `claims` is empty and says nothing."""
    free_mib: int
    """Disk free where the data is."""

    def rooms(self, host_name: str, host: Host) -> dict[tuple[str, str], Room]:
        """What each declared GPU has to give here and now, by (host, UUID).

        What processes hold that are not Berth's is not there to be claimed.
        """
        listed = {gpu.uuid: gpu for gpu in self.gpus.found}
        return {
            (host_name, gpu.uuid): Room(
                index=listed[gpu.uuid].index if gpu.uuid in listed else gpu.index,
                mib=gpu.cuda_mib,
                foreign=self._foreign(gpu.uuid),
            )
            for gpu in host.gpus
        }

    def claims_of_others(self, host_name: str, holder: str) -> list[Claim]:
        """What everybody but `holder` (`project/stack/demo`) claims here."""
        return [
            claim
            for record in self.claims
            if record.owner != holder
            for claim in record.claims(host_name)
        ]

    def _foreign(self, uuid: str) -> tuple[Foreign, ...]:
        return tuple(
            Foreign(process.name, process.pid, process.mib)
            for process in self.processes
            if process.gpu == uuid and not process.instance
        )
