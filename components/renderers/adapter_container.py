"""The adapter's container: it reads its configuration and the weights, and can do little else.

It is in the host's own network, because engines listen on the host's loopback. It listens there
too: it refuses a configuration with any other address.
"""

from __future__ import annotations

from models.host import Host
from models.instance import Mount

DIRECTORY = "/etc/berth/adapter"
"""Its configuration, on the host and in the container."""
USER = "berth-adapter"
UID = 65530
"""User and group, on the host and in the container: not root, so that what it may read of the
demos' keys is given to it by name. The number lies where Debian and systemd give out none."""
COMMAND = ("--config", DIRECTORY)
ENTRY = ("python3", "-m", "gateway")
LABEL = "berth.service"


def mounts(host: Host) -> list[Mount]:
    """Configuration and weights, both only to be read: the chat templates lie in the weights."""
    return [Mount(source=path, target=path) for path in (DIRECTORY, host.weights)]


def labels(name: str, stack: str) -> dict[str, str]:
    """How Berth knows its own container again.

    Args:
        name: its unit's, without `.service`.
        stack: who set it up.
    """
    return {"berth.stack": stack, LABEL: name}
