"""Debian root file systems by mmdebstrap, from the machine's own package sources."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .cache import cached, key
from .process import SandboxError, output
from .progress import say, step

SUITE = "bookworm"
NGINX = Path(__file__).resolve().parents[1] / "tools/nginx"
HOST_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "python3", "docker.io"),
    *("iptables", "ca-certificates", "curl", "procps", "iproute2", "kmod", "less"),
    *output([str(NGINX), "--list"]).split(),  # As on a host that was made ready for a gateway.
)
TRITON_PACKAGES = ("python3", "libpython3.11", "ca-certificates", "curl", "procps")


def _bootstrap(packages: tuple[str, ...], target: Path) -> None:
    command = ["nice", "mmdebstrap", "--variant=minbase", "--format=tar"]
    command += [f"--include={','.join(packages)}", SUITE, str(target)]
    lines = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            lines.append(line.rstrip())
            if line.startswith("I: "):
                say(f"  mmdebstrap: {line[3:].strip()}")
    if process.returncode:
        target.unlink(missing_ok=True)
        raise SandboxError("mmdebstrap failed:\n" + "\n".join(lines[-15:]))


def rootfs(name: str, packages: tuple[str, ...]) -> Path:
    """The tar of a minimal Debian with these packages."""

    def build(target: Path) -> None:
        with step(f"bootstrapping Debian {SUITE} for the {name}"):
            _bootstrap(packages, target)

    return cached(f"{name}-rootfs.tar", key([SUITE, *packages]), build)
