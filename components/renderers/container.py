"""An instance's container: pinned to its GPUs by UUID, nothing open beyond the host's loopback."""

from __future__ import annotations

from dataclasses import dataclass

from models.host import Host
from models.instance import CONTROL_HEADER
from models.plan import PlannedInstance

HTTP, METRICS = 8000, 8002
"""Triton's default ports, inside the container."""

CONTROL_APIS = "model-repository,shared-memory,trace,logging"
SERVE = "/etc/berth/serve_triton.py"
KEY = "/run/berth/control.key"


@dataclass(frozen=True)
class DeviceRequest:
    """Docker's GPU request (API ≥ 1.40 for the hook, Docker ≥ 25 for CDI)."""

    driver: str
    device_ids: tuple[str, ...]
    capabilities: tuple[str, ...]


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
        f"--control-apis={CONTROL_APIS}",
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


def read_only_mounts(instance: PlannedInstance) -> dict[str, str]:
    """Path in the container → path on the host; all read-only.

    Read-only, because Triton's Python backend writes `__pycache__` into an entry, which makes the
    next load a real reload.
    """
    host = instance.host
    return {
        host.repository: host.repository,
        host.weights: host.weights,
        SERVE: SERVE,
        KEY: instance.control_key_file,
    }


def published_ports(instance: PlannedInstance) -> dict[int, int]:
    """Port in the container → port on the host's loopback."""
    return {HTTP: instance.declared.http_port, METRICS: instance.declared.metrics_port}


def environment(instance: PlannedInstance) -> list[str]:
    """The server's declared variables, in a stable order."""
    return [f"{name}={value}" for name, value in sorted(instance.declared.environment.items())]


def labels(instance: PlannedInstance, stack: str) -> dict[str, str]:
    """How Berth knows its own containers again."""
    return {"berth.stack": stack, "berth.instance": instance.name}
