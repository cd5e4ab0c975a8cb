"""The container that is the host: made, started, looked at, removed."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

from .process import SandboxError, run
from .settings import ADDRESS, GATEWAY, Settings

LABEL = "berth.sandbox"
IMAGE_LABEL = "berth.sandbox.image"
_BOOT_OPTIONS = (
    *("--cap-add=ALL", "--cap-drop=SYS_RESOURCE", "--cgroupns=private"),
    *("--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined"),
    *("--tmpfs=/run", "--tmpfs=/run/lock", "--tmpfs=/tmp", "--volume=/var/lib/docker"),
)
"""What systemd and an inner Docker need; `--privileged` is refused where SYS_RESOURCE is."""


@dataclass(frozen=True)
class State:
    running: bool
    settings: Settings
    image: str


def look(name: str) -> State | None:
    """The sandbox of this name, or None; another's container of the same name is not ours."""
    done = run(["docker", "inspect", "--type=container", name], check=False)
    if done.returncode:
        return None
    found = json.loads(done.stdout)[0]
    labels = found["Config"]["Labels"] or {}
    if LABEL not in labels:
        raise SandboxError(f"a container {name} exists and is no sandbox; choose another --name")
    settings = Settings.from_label(labels[LABEL])
    return State(bool(found["State"]["Running"]), settings, labels[IMAGE_LABEL])


def create(settings: Settings, image: str, directory: Path) -> None:
    """Make the container, with its keys and GPUs written, not yet started."""
    gateway = f"{ADDRESS}:{settings.gateway_port}:{GATEWAY}"
    run(
        [
            *("docker", "create", "--name", settings.name),
            *("--hostname", settings.name, *_BOOT_OPTIONS),
            *("--label", f"{LABEL}={settings.to_label()}", "--label", f"{IMAGE_LABEL}={image}"),
            *("--publish", f"{ADDRESS}:{settings.ssh_port}:22"),
            *(("--publish", gateway) if settings.gateway_port else ()),
            image,
        ]
    )
    run(
        ["docker", "cp", "-", f"{settings.name}:/"],
        stdin=_identity(settings, directory),
    )


def _identity(settings: Settings, directory: Path) -> bytes:
    """A tar of what makes this host itself: keys and number of GPUs."""
    gpus = json.dumps({"count": settings.gpus, "memory_mib": settings.memory_mib}).encode()
    files = (
        ("etc/simgpu/gpus.json", gpus, 0o644),
        ("etc/ssh/ssh_host_ed25519_key", (directory / "host_key").read_bytes(), 0o600),
        ("etc/ssh/ssh_host_ed25519_key.pub", (directory / "host_key.pub").read_bytes(), 0o644),
        ("etc/ssh/authorized_keys/berth", (directory / "id_ed25519.pub").read_bytes(), 0o644),
    )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content, mode in files:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def start(name: str) -> None:
    run(["docker", "start", name])


def power_cut(name: str) -> None:
    """All processes die at once; the disk stays, memory and /run do not; then it boots."""
    run(["docker", "restart", "--time=0", name])


def remove(name: str) -> None:
    run(["docker", "rm", "--force", "--volumes", name], check=False)


def shell(name: str, script: str, *, stdin: bytes | None = None, check: bool = True) -> str:
    """Run a shell script as root on the host and return what it prints."""
    interactive = ["--interactive"] if stdin is not None else []
    command = ["docker", "exec", *interactive, name, "sh", "-c", script]
    return run(command, stdin=stdin, check=check).stdout.decode()
