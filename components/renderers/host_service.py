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


def unused(directory: str, unit: str) -> str:
    """Shell lines that refuse while demos have routes there, before anything is ended.

    Args:
        directory: the one that holds `routes.d`.
        unit: what serves them.
    """
    return f"""\
left=$(ls {directory}/routes.d 2>/dev/null | grep '[.]json$' | tr '\\n' ' ' || true)
if [ -n "$left" ]; then
  echo "{directory}/routes.d still holds: $left" >&2
  echo "Clients of those demos would get no answer, so {unit} stays." >&2
  echo "Fix: pulumi destroy the stacks of those demos first, after an up where one was cut off." >&2
  exit 1
fi
"""
