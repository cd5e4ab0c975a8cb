"""An instance: one server process, in one container under one systemd unit, pinned to GPUs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from models.scalars import Declared, GpuUuid, MiB, Name, Port, Seconds

CONTROL_HEADER = "X-Berth-Control"
"""Header that opens Triton's restricted APIs (`--http-restricted-api`)."""


class Instance(Declared):
    """A Triton server in EXPLICIT model control. Narrow with one GPU, wide with several."""

    host: Name
    """The host it runs on, by its name in `berth:hosts`."""
    gpus: Annotated[list[GpuUuid], Field(min_length=1)]
    """The GPUs it is pinned to, by UUID. It sees no other."""
    image: str = Field(min_length=1)
    """Container image; outside a sandbox by digest (`…@sha256:…`)."""
    http_port: Port
    """Port of HTTP and its control API, on the host's loopback only."""
    metrics_port: Port
    """Port of the Prometheus metrics, on the host's loopback only."""
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
