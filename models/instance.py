"""An instance: one server process, in one container under one systemd unit, pinned to GPUs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from models.scalars import AbsolutePath, Declared, GpuUuid, MiB, Name, Port, Seconds

LOOPBACK = "127.0.0.1"
CONTROL_HEADER = "X-Berth-Control"
"""Header that opens Triton's restricted APIs (`--http-restricted-api`)."""


class Mount(Declared):
    """A directory of the host in the container."""

    source: AbsolutePath
    """Path on the host."""
    target: AbsolutePath
    """Path in the container."""
    read_only: bool = True
    """Whether the server may only read there. A cache has to be written."""


class Instance(Declared):
    """A Triton server in EXPLICIT model control. Narrow with one GPU, wide with several."""

    host: Name
    """The host it runs on, by its name in `berth:hosts`."""
    gpus: Annotated[list[GpuUuid], Field(min_length=1)]
    """The GPUs it is pinned to, by UUID. It sees no other."""
    image: str = Field(min_length=1)
    """Container image, by digest (`repository:tag@sha256:…`) unless the host's `image_references`
    says otherwise, or `build:<name>`. The tag says which release it is."""
    http_port: Port
    """Port of HTTP and its control API, on the host's loopback only."""
    metrics_port: Port
    """Port of the Prometheus metrics, on the host's loopback only."""
    listen: Annotated[str, Field(pattern=r"^\d{1,3}(\.\d{1,3}){3}$")] = LOOPBACK
    """Address of the host on which HTTP is open. Beyond loopback only with `keyed_apis: all`."""
    keyed_apis: Literal["control", "all"] = "control"
    """Which of Triton's APIs ask for the instance's key: those that load and unload, or all, health
    and inference included."""
    mounts: list[Mount] = []
    """Further directories, such as a compile cache. Weights and repository are there, read-only."""
    environment: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = {}
    """Variables for the server, such as `NCCL_P2P_DISABLE: "1"` on machines without NVLink. No
    secrets: `docker inspect` shows them."""
    shm_size_mib: MiB = 1024
    """Size of the container's own /dev/shm, in MiB; NCCL without P2P asks for 1 GiB."""
    stop_timeout_s: Seconds = 30
    """How long a stop waits for running requests before it kills, in seconds."""

    @property
    def width(self) -> int:
        """Number of GPUs."""
        return len(self.gpus)
