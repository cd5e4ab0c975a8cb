"""What the machine itself must have: a few Debian packages and a running Docker daemon."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from .process import SandboxError, output, run
from .progress import step

PACKAGES = {
    "dockerd": "docker.io",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "gcc": "gcc",
    "pip3": "python3-pip",
}
"""Program that must be there, and the Debian package that brings it."""
DAEMON_START_SECONDS = 60
PID_FILES = {
    "dockerd": Path("/var/run/docker.pid"),
    "containerd": Path("/var/run/docker/containerd/containerd.pid"),
}
"""Program, and where dockerd looks up whether it is running already."""


def _works(command: list[str]) -> bool:
    return run(command, check=False, timeout=30).returncode == 0


def install_packages() -> None:
    # Daemons live in sbin, which is not on every user's PATH.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [p for program, p in PACKAGES.items() if not shutil.which(program, path=path)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SandboxError(f"needs {', '.join(missing)}; install them, or run as root on Debian")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    with step(f"installing {', '.join(missing)}"):
        for command in (install, ["apt-get", "update"], install):
            done = subprocess.run(command, env=environment, check=False, capture_output=True)
            if command is install and done.returncode == 0:
                return
    raise SandboxError(f"apt-get install failed: {done.stderr.decode().strip()}")


def forget_dead_daemons(pid_files: dict[str, Path] = PID_FILES, proc: Path = Path("/proc")) -> None:
    """Remove each pid file whose process is gone, or whose number another program has now.

    Where /run outlives a boot, a killed daemon leaves its pid file. dockerd asks only whether
    *some* process has that number: it then waits for a containerd that is not there, and gives up.
    """
    for program, file in pid_files.items():
        try:
            holder = (proc / file.read_text().strip() / "comm").read_text().strip()
        except OSError:
            holder = ""
        if holder != program:
            file.unlink(missing_ok=True)


def _start_by_service() -> None:
    run(["service", "docker", "start"], check=False, timeout=60)


def _start_directly() -> None:
    """Where the service's script may not raise its limits it gives up before it starts dockerd."""
    log = Path("/var/log/docker.log").open("ab")  # noqa: SIM115 (the daemon keeps it)
    subprocess.Popen(
        ["/usr/sbin/dockerd"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def start_docker() -> None:
    """Have a Docker daemon that answers, whichever way it can be started here."""
    if shutil.which("docker") and _works(["docker", "version"]):
        return
    ways: list[Callable[[], None]] = [_start_by_service, _start_directly]
    with step("starting dockerd"):
        for way in ways:
            forget_dead_daemons()
            way()
            deadline = time.monotonic() + (10 if way is _start_by_service else DAEMON_START_SECONDS)
            while time.monotonic() < deadline:
                if _works(["docker", "version"]):
                    return
                time.sleep(0.3)
    raise SandboxError("dockerd does not answer; its log is /var/log/docker.log")


def prepare() -> None:
    install_packages()
    start_docker()
    if output(["docker", "version", "--format", "{{.Server.Os}}"]) != "linux":
        raise SandboxError("the Docker daemon is not a Linux one")
