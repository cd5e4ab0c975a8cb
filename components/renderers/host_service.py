"""A note on the host of each thing that runs there beside the instances, for its inventory.

By it the next run tells its own gateway's port from one that something else has taken.
"""

from __future__ import annotations

import json

SERVICES = "/etc/berth/services"
"""As in `host/inventory.py`."""


def noted(stem: str, port: int, stack: str) -> str:
    """Shell lines that write the note; they go before whatever starts the unit.

    Args:
        stem: the unit, without `.service`.
        port: that it listens on.
        stack: who sets it up.
    """
    text = json.dumps({"unit": f"{stem}.service", "port": port, "stack": stack}, sort_keys=True)
    file = f"{SERVICES}/{stem}.json"
    return f"""\
install -d -m 0755 /etc/berth {SERVICES}
cat > {file}.new <<'END_OF_FILE'
{text}
END_OF_FILE
mv -f {file}.new {file}
"""


def forgotten(stem: str) -> str:
    """Shell lines that remove the note; they go after whatever ends the unit."""
    return f"""\
rm -f {SERVICES}/{stem}.json {SERVICES}/{stem}.json.new
[ ! -d {SERVICES} ] || rmdir --ignore-fail-on-non-empty {SERVICES}
"""
