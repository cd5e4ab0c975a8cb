"""A host: a GPU machine reached over SSH, with Docker and systemd."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from models.gateway import Gateway
from models.memory import cuda_mib
from models.scalars import AbsolutePath, Declared, GpuUuid, MiB, Port, Seconds

HostKey = Annotated[str, Field(pattern=r"^(ssh|ecdsa|sk)-\S+ [A-Za-z0-9+/=]+( .*)?$")]


class SshAccess(Declared):
    """How a host is reached. Its key is always checked against what is declared here."""

    address: str = Field(min_length=1)
    """Host name or IP address."""
    port: Port = 22
    """Port of sshd."""
    user: str = Field(default="root", pattern=r"^[a-z_][a-z0-9_-]*$")
    """Login user: root, or a member of group `docker` who may use `sudo` without a password."""
    private_key_file: str | None = None
    """Private key on this machine, relative to the project or `~`; unset: the SSH agent's keys."""
    host_key: HostKey | None = None
    """The host's public key, as in `/etc/ssh/ssh_host_ed25519_key.pub`."""
    host_key_file: str | None = None
    """A file with that line, relative to the project, instead of `host_key`."""

    @model_validator(mode="after")
    def _one_host_key(self) -> Self:
        if (self.host_key is None) == (self.host_key_file is None):
            raise ValueError(
                "give the host's public key, as `host_key` or as `host_key_file` (one of them); "
                "`ssh-keyscan -t ed25519 ADDRESS` prints it; compare it with the one on the host"
            )
        return self


class Gpu(Declared):
    """One GPU, by UUID; index and memory are what `nvidia-smi` shows beside it."""

    uuid: GpuUuid
    """The GPU's UUID, as `nvidia-smi -L` prints it."""
    index: int = Field(ge=0, le=255)
    """Index in `nvidia-smi`, for people only: it may change when a card is added."""
    memory_mib: MiB
    """`memory.total` of `nvidia-smi`, in MiB (an L4: 23034)."""
    reserved_mib: int | None = Field(default=None, ge=0)
    """`memory.reserved` of `nvidia-smi`, in MiB: what the driver keeps of it for itself. Unset:
    in proportion to an L4's 469."""

    @property
    def cuda_mib(self) -> int:
        """What CUDA reports for the device, in MiB: an L4's 23034 are about 22.0 GiB there."""
        return cuda_mib(self.memory_mib, self.reserved_mib)


class Ulimit(Declared):
    """A resource limit of an instance's processes; -1 is unlimited."""

    name: Literal["memlock", "nofile", "stack"]
    """Which limit: `memlock` and `stack` in bytes, `nofile` a number of files."""
    soft: int = Field(ge=-1)
    """What processes start with; -1 is unlimited."""
    hard: int = Field(ge=-1)
    """How far they may raise it; -1 is unlimited."""


class Restart(Declared):
    """How a unit whose server ended is started again, and when that is given up."""

    delay_s: Seconds = 2
    """Pause before a server that ended is started again, in seconds."""
    burst: int = Field(default=10, ge=0)
    """How many starts within `within_s` are tried before the unit is left failed."""
    within_s: int = Field(default=300, ge=0)
    """The time in which they are counted, in seconds."""


class Host(Declared):
    """A GPU machine."""

    ssh: SshAccess
    """How it is reached."""
    gpus: list[Gpu] = Field(min_length=1)
    """The GPUs that Berth may use; others there are left alone."""
    gpu_access: Literal["cdi", "hook"] = "cdi"
    """How Docker hands GPUs to containers. `cdi` keeps them across `systemctl daemon-reload`; on
    the `hook` path a reload can cut a running container off (nvidia-container-toolkit#48)."""
    data_dir: AbsolutePath = "/data/triton"
    """Directory on the host with the model repository (`models/`) and the `weights/`."""
    ulimits: list[Ulimit] = [
        Ulimit(name="memlock", soft=-1, hard=-1),
        Ulimit(name="stack", soft=67108864, hard=67108864),
    ]
    """Limits for every instance here; NCCL and Triton ask for these two (NCCL documentation)."""

    image_references: Literal["digest", "tag"] = "digest"
    """How images must be named here. `digest` (`repository:tag@sha256:…`): what was reviewed is
    what runs. `tag` is for a host whose images are built on it and have no digest to name."""
    restart: Restart = Restart()
    """How units here are restarted."""
    gateway: Gateway | None = None
    """Where clients reach the roles on this host; without one, each server on its loopback."""

    @property
    def repository(self) -> str:
        """The model repository on the host, and in every container."""
        return f"{self.data_dir}/models"

    @property
    def weights(self) -> str:
        """The weights on the host, and in every container."""
        return f"{self.data_dir}/weights"
