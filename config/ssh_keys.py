"""The keys that a host's declaration names: its own public key, and ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from models.host import Host, SshAccess
from models.refusal import Refusal


def host_key(project: Path, host_name: str, ssh: SshAccess, *, needed: bool = True) -> str:
    """The host's public key line, from the declaration or the file it names.

    Args:
        needed: False where nobody is to be asked: then a file that is not here is an empty key.
    """
    if ssh.host_key is not None:
        return ssh.host_key
    path = project / str(ssh.host_key_file)
    try:
        lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    except OSError as error:
        if not needed:
            return ""
        raise Refusal(
            f"{ssh.host_key_file}: {error.strerror}",
            consequence="The host's key could not be checked, so nothing was connected.",
            fix="put the host's public key there (for the sandbox: `make up`).",
            at=f"berth:hosts.{host_name}.ssh.host_key_file",
        ) from None
    if len(lines) != 1 or len(lines[0].split()) < 2:
        raise Refusal(
            f"{ssh.host_key_file} is not one public key line (`ssh-ed25519 AAAA…`)",
            consequence="The host's key could not be checked, so nothing was connected.",
            at=f"berth:hosts.{host_name}.ssh.host_key_file",
        )
    return lines[0]


def private_key_path(project: Path, ssh: SshAccess) -> Path | None:
    """Where our private key is on this machine; None when the SSH agent holds it."""
    if ssh.private_key_file is None:
        return None
    return project / Path(ssh.private_key_file).expanduser()


def private_key(
    project: Path, host_name: str, ssh: SshAccess, *, needed: bool = True
) -> str | None:
    """Our private key's content; None when the SSH agent holds it, or it is not here nor needed."""
    path = private_key_path(project, ssh)
    if path is None:
        if needed and "SSH_AUTH_SOCK" not in os.environ:
            raise Refusal(
                "no `private_key_file`, and no SSH agent runs here",
                consequence="Nothing could log in to the host.",
                fix="give `private_key_file`, or start an agent and `ssh-add` the key.",
                at=f"berth:hosts.{host_name}.ssh",
            )
        return None
    try:
        return path.read_text()
    except OSError as error:
        if not needed:
            return None
        raise Refusal(
            f"{ssh.private_key_file}: {error.strerror}",
            consequence="Nothing could log in to the host.",
            fix="name the private key whose public half is in the host's authorized_keys.",
            at=f"berth:hosts.{host_name}.ssh.private_key_file",
        ) from None


def ssh_properties(ssh: SshAccess, key: str) -> dict[str, object]:
    """How a host is reached, as plain data. No secret: it says where the private key is."""
    return {
        "address": ssh.address,
        "port": ssh.port,
        "user": ssh.user,
        "private_key_file": ssh.private_key_file,
        "host_key": key,
    }


def ssh_of_hosts(project: Path, hosts: Mapping[str, Host]) -> dict[str, dict[str, object]]:
    """Host name → how it is reached."""
    return {
        name: ssh_properties(host.ssh, host_key(project, name, host.ssh))
        for name, host in hosts.items()
    }
