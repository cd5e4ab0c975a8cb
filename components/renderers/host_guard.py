"""What keeps a host from being taken down while others stand on it."""

from __future__ import annotations

from components.renderers import berth_host
from models.host import Host


def host_stack(stack: str, project: str = "berth") -> str:
    """A stack as claims, entries and units' environments name it: `project/stack`."""
    return f"{project}/{stack}"


def nobody_else(host: Host, stack: str) -> str:
    """A shell script that fails, naming them, if others hold claims or have entries on the host.

    Args:
        host: the host.
        stack: `project/stack` of its own stack.
    """
    return f"""\
if [ -x {berth_host.PATH} ]; then
  exec {berth_host.PATH} guard --stack {stack} --repository {host.repository}
fi
[ ! -e {berth_host.LEDGER} ] && [ -z "$(ls -A {host.repository} 2>/dev/null)" ] && exit 0
echo "{berth_host.PATH} is gone, so nobody can say who else stands on this host" >&2
echo "  Nothing of it is taken down." >&2
echo "  Fix: pulumi up this stack, which installs it again, then destroy it." >&2
exit 1
"""
