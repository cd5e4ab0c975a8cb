"""Options for `ssh`, which the Docker provider runs, so that it checks the host's key."""

from __future__ import annotations

CONNECT_TIMEOUT_S = 15


def ssh_options(host_name: str, host_key: str, private_key_file: str | None) -> list[str]:
    """Arguments of `ssh` (OpenSSH ≥ 8.5): only the declared key is accepted, nothing is asked.

    `KnownHostsCommand` gives the declared key, so that no file of known hosts has to be kept.
    """
    alias = f"berth-{host_name}"
    key = " ".join(host_key.split()[:2])
    options = [
        f"HostKeyAlias={alias}",
        f"KnownHostsCommand=/bin/echo {alias} {key}",
        "UserKnownHostsFile=none",
        "GlobalKnownHostsFile=none",
        "StrictHostKeyChecking=yes",
        "BatchMode=yes",
        f"ConnectTimeout={CONNECT_TIMEOUT_S}",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=3",
    ]
    if private_key_file is not None:
        options += ["IdentitiesOnly=yes", f"IdentityFile={private_key_file}"]
    return [part for option in options for part in ("-o", option)]
