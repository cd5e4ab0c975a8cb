"""A real sshd of the test's own, on a loopback port."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

SSHD = Path("/usr/sbin/sshd")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class LocalSshd:
    """sshd with keys of its own; `bin` comes first on the PATH of its sessions."""

    place: Path
    settings: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.bin = self.place / "bin"
        self.bin.mkdir(parents=True)
        self.client_key = self.key("client_key")
        self.host_key = self.key("host_key")
        authorized = self.place / "authorized_keys"
        authorized.write_bytes(self.client_key.with_suffix(".pub").read_bytes())
        lines = (
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.host_key}",
            f"AuthorizedKeysFile {authorized}",
            # A home of its own: the shell reads no start-up file of the person who runs the tests.
            f"SetEnv PATH={self.bin}:{PATH} HOME={self.place}",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin prohibit-password",
            "KbdInteractiveAuthentication no",
            "PasswordAuthentication no",
            *self.settings,
        )
        (self.place / "sshd_config").write_text("\n".join(lines) + "\n")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own need, without systemd
        self._log = (self.place / "sshd.log").open("wb")
        self._process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", self.place / "sshd_config"],
            stderr=self._log,
            start_new_session=True,
        )
        give_up = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > give_up or self._process.poll() is not None:
                    raise RuntimeError((self.place / "sshd.log").read_text()) from None
                time.sleep(0.02)

    def key(self, name: str, kind: str = "ssh-ed25519") -> Path:
        """A new private key in a file, its public key beside it."""
        path = self.place / name
        key = asyncssh.generate_private_key(kind)
        key.write_private_key(str(path))
        path.chmod(0o600)
        key.write_public_key(str(path) + ".pub")
        return path

    @property
    def ssh(self) -> dict[str, Any]:
        """How the providers are told to reach it, with numbers as Pulumi hands them over."""
        return {
            "address": "127.0.0.1",
            "port": float(self.port),
            "user": getpass.getuser(),
            "private_key_file": str(self.client_key),
            "host_key": self.host_key.with_suffix(".pub").read_text().strip(),
        }

    def executable(self, name: str, script: str) -> None:
        """Put a program on the PATH of the sessions."""
        path = self.bin / name
        path.write_text(script)
        path.chmod(0o755)

    def freeze_sessions(self) -> list[int]:
        """Stop the processes of the open sessions, as if the host had been cut off."""
        found = subprocess.run(
            ["pgrep", "-P", str(self._process.pid)], capture_output=True, text=True, check=False
        )
        stopped = []
        for session in found.stdout.split():
            children = subprocess.run(
                ["pgrep", "-P", session], capture_output=True, text=True, check=False
            )
            stopped += [int(session), *(int(child) for child in children.stdout.split())]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        return stopped

    def stop(self) -> None:
        """End it; sessions that are open end with their connections."""
        self._process.terminate()
        self._process.wait(10)
        self._log.close()
