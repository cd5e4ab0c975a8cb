"""Asks a host for its inventory, in one command, whether it is set up yet or not."""

from __future__ import annotations

from components.providers.ssh import Session
from components.renderers import berth_host
from models.host import Host
from models.inventory import Inventory

TIMEOUT_S = 60.0
_PROGRAM = """\
import base64, bz2, os, sys

def main(asked):
    # A file without a name: nothing is left behind, however this ends, nor does a full disk matter.
    memory = os.memfd_create('berth-host')
    with open(memory, 'wb', closefd=False) as file:
        file.write(bz2.decompress(base64.b64decode(asked['program'])))
    sys.path.insert(0, '/proc/self/fd/%d' % memory)
    from {module} import {function}
    return {function}(asked)
"""


def shipped(module: str, function: str) -> str:
    """A program that runs one of berth-host's functions; `program` in its payload brings them."""
    return _PROGRAM.format(module=module, function=function)


async def ask(session: Session, host: Host) -> Inventory:
    """What the host is and holds, now.

    The program travels with the question, so the answer is of this version of Berth, and a host
    that is not set up answers too.

    Raises:
        Refusal: python3 or sudo is missing there, or the connection broke.
    """
    answer = await session.run_python(
        shipped("host.inventory", "take"),
        {
            "user": host.ssh.user,
            "data_dir": host.data_dir,
            "program": berth_host.packed(),
        },
        doing="asking the host what it is",
        timeout_s=TIMEOUT_S,
    )
    return Inventory.model_validate(answer)
