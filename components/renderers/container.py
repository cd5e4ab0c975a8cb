"""An instance's container: pinned to its GPUs, open on loopback unless declared otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from models.host import Host
from models.instance import CONTROL_HEADER, LOOPBACK, Mount
from models.plan import PlannedInstance

HTTP, METRICS = 8000, 8002
"""Triton's default ports, inside the container."""

CONTROL_APIS = "model-repository,shared-memory,trace,logging"
ALL_APIS = f"health,metadata,inference,model-config,statistics,{CONTROL_APIS}"
"""The groups of `--http-restricted-api`."""
EVERYWHERE = "0.0.0.0"  # noqa: S104 - declared by a person, and judged
SERVE = "/etc/berth/serve_triton.py"
KEY = "/run/berth/control.key"


@dataclass(frozen=True)
class DeviceRequest:
    """Docker's GPU request (API ≥ 1.40 for the hook, Docker ≥ 25 for CDI)."""

    driver: str
    device_ids: tuple[str, ...]
    capabilities: tuple[str, ...]


@dataclass(frozen=True)
class PublishedPort:
    """A port of the container, open on the host."""

    address: str
    """The host's, on which it is open."""
    port: int
    """On the host."""
    inside: int
    """In the container."""


def container_name(instance: PlannedInstance) -> str:
    """First part of the container's name; what follows differs with each one made."""
    return f"triton-{instance.id}"


def device_request(host: Host, gpus: tuple[str, ...]) -> DeviceRequest:
    """A request for just these GPUs, on the way that the host hands them out."""
    if host.gpu_access == "cdi":
        return DeviceRequest("cdi", tuple(f"nvidia.com/gpu={uuid}" for uuid in gpus), ())
    return DeviceRequest("nvidia", gpus, ("gpu",))


def command(instance: PlannedInstance) -> list[str]:
    """What runs in the container. The control key is read from a file there, see `SERVE`."""
    return [
        "python3",
        SERVE,
        f"--control-key-file={KEY}",
        f"--control-header={CONTROL_HEADER}",
        f"--control-apis={ALL_APIS if instance.declared.keyed_apis == 'all' else CONTROL_APIS}",
        "--",
        "tritonserver",
        f"--model-repository={instance.host.repository}",
        "--model-control-mode=explicit",
        "--allow-http=true",
        f"--http-port={HTTP}",
        "--allow-grpc=false",
        "--allow-metrics=true",
        f"--metrics-port={METRICS}",
        "--exit-on-error=false",
        # Servers that share /dev/shm need distinct prefixes; it costs nothing where they do not.
        f"--backend-config=python,shm-region-prefix-name={container_name(instance)}",
    ]


def mounts(instance: PlannedInstance) -> list[Mount]:
    """What the server sees of the host's files.

    Berth's own are read-only: Triton's Python backend writes `__pycache__` into an entry, which
    makes the next load a real reload.
    """
    host = instance.host
    own = {
        host.repository: host.repository,
        host.weights: host.weights,
        SERVE: SERVE,
        KEY: instance.control_key_file,
    }
    ours = [Mount(source=on_host, target=inside) for inside, on_host in own.items()]
    return [*ours, *instance.declared.mounts]


def published_ports(instance: PlannedInstance) -> list[PublishedPort]:
    """Metrics have no key in Triton, so they stay on loopback wherever HTTP is open."""
    declared = instance.declared
    # Berth itself comes through the host's loopback, which 0.0.0.0 holds already.
    listening = [EVERYWHERE] if declared.listen == EVERYWHERE else [LOOPBACK, declared.listen]
    return [
        *(PublishedPort(on, declared.http_port, HTTP) for on in dict.fromkeys(listening)),
        PublishedPort(LOOPBACK, declared.metrics_port, METRICS),
    ]


def environment(instance: PlannedInstance) -> list[str]:
    """The server's declared variables, in a stable order."""
    return [f"{name}={value}" for name, value in sorted(instance.declared.environment.items())]


def labels(instance: PlannedInstance, stack: str) -> dict[str, str]:
    """How Berth knows its own containers again."""
    return {"berth.stack": stack, "berth.instance": instance.name}
