"""OpenSSH's own server on a loopback port, for one test."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SshHost:
    port: int
    user: str
    private_key: str
    host_key: str


@contextlib.contextmanager
def ssh_host(folder: Path) -> Iterator[SshHost]:
    daemon = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert daemon, "This test needs OpenSSH's server. On Debian: apt-get install openssh-server"
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "client"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True, timeout=60)
    port = _free_port()
    options = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "client.pub",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "Subsystem": "sftp internal-sftp",
    }
    config = folder / "sshd_config"
    config.write_text("".join(f"{key} {value}\n" for key, value in options.items()))
    with (folder / "sshd.log").open("w") as log:
        server = subprocess.Popen([daemon, "-D", "-e", "-f", str(config)], stderr=log)
        try:
            _await(port)
            key, host_key = (folder / "client").read_text(), (folder / "host.pub").read_text()
            yield SshHost(port, getpass.getuser(), key, host_key)
        finally:
            server.kill()
            server.wait(timeout=30)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _await(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "sshd did not listen within 10 s"
            time.sleep(0.05)
