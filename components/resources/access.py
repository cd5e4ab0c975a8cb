"""How the resources of one host reach it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_docker as docker
from pulumi_command.remote import ConnectionArgs

from components.renderers.ssh_options import CONNECT_TIMEOUT_S, ssh_options
from config.ssh_keys import host_key, private_key, ssh_properties
from models.host import Host

DIALS = 10
"""Tries to connect before a command gives up; sshd may refuse some while many start at once."""


@dataclass(frozen=True)
class HostAccess:
    """One host's access, in the three forms in which providers want it."""

    name: str
    host: Host
    key: str
    """The host's public key line."""
    private_key: str | None

    @classmethod
    def of(cls, project: Path, name: str, host: Host, *, asked: bool = True) -> HostAccess:
        """Read the declared keys.

        Args:
            asked: whether the host is to be reached at all; where it is not, keys may be missing.

        Raises:
            Refusal: if a key file is missing.
        """
        return cls(
            name,
            host,
            host_key(project, name, host.ssh, needed=asked),
            private_key(project, name, host.ssh, needed=asked),
        )

    @property
    def ssh(self) -> dict[str, object]:
        """For the dynamic providers. No secret: it says where the private key is, not what."""
        return ssh_properties(self.host.ssh, self.key)

    def connection(self) -> ConnectionArgs:
        """For the Command provider."""
        access = self.host.ssh
        key = pulumi.Output.secret(self.private_key) if self.private_key is not None else None
        return ConnectionArgs(
            host=access.address,
            port=access.port,
            user=access.user,
            private_key=key,
            agent_socket_path=os.environ.get("SSH_AUTH_SOCK") if key is None else None,
            host_key=self.key,
            dial_error_limit=DIALS,
            per_dial_timeout=CONNECT_TIMEOUT_S,
        )

    def docker(self, opts: pulumi.ResourceOptions) -> docker.Provider:
        """A Docker provider for this host."""
        access = self.host.ssh
        return docker.Provider(
            f"docker-{self.name}",
            host=f"ssh://{access.user}@{access.address}:{access.port}",
            ssh_opts=ssh_options(self.name, self.key, access.private_key_file),
            opts=opts,
        )
