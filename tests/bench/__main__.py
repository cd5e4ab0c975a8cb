"""`make bench`: each figure with its aim. Nothing is asserted: timings are no tests.

`python -m tests.bench rules many_hosts` takes only some of the parts.
"""

from __future__ import annotations

import signal
import sys

from rich.console import Console
from rich.table import Table

from tests.bench import adapter, gateway, many_hosts, one_host, rules, swap

PARTS = {
    "rules": rules.rows,
    "gateway": gateway.rows,
    "two_workers": gateway.rows_of_two,
    "adapter": adapter.rows,
    "many_hosts": many_hosts.rows,
    "one_host": one_host.rows,
    "swap": swap.rows,
}


def main() -> None:
    """Print the table of the parts that are named, or of all."""
    # What the parts have started ends with them.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    table = Table("figure", "measured (medians)", "aim", title="Berth on this machine")
    for part in sys.argv[1:] or PARTS:
        for row in PARTS[part]():
            table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
