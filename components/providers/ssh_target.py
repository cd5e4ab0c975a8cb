"""The one machine that is meant, and how it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SshTarget:
    """How a host is reached: `models.host.SshAccess` with its host key read."""

    address: str
    port: int
    user: str
    private_key_file: str | None
    host_key: str

    @classmethod
    def of(cls, ssh: Mapping[str, Any]) -> SshTarget:
        """From a resource's input, where Pulumi has made every number a float."""
        return cls(
            address=str(ssh["address"]),
            port=int(ssh.get("port") or 22),
            user=str(ssh.get("user") or "root"),
            private_key_file=ssh.get("private_key_file"),
            host_key=str(ssh["host_key"]),
        )

    @property
    def login(self) -> str:
        """`user@address`."""
        return f"{self.user}@{self.address}"
