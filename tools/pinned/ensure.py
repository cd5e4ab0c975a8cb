"""`tools/toolchain ensure`: a usable Pulumi, found or built, named on stdout."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from . import assembly
from .build import built
from .failure import ToolchainError
from .golang import compiler
from .installed import installed
from .progress import say
from .recipe import recipes


def ensure() -> list[str]:
    """The lines that a caller reads: PULUMI_BIN, and PULUMI_HOME when the toolchain is ours."""
    usual = installed()
    if usual:
        return [f"PULUMI_BIN={usual}"]
    go = compiler()
    folders: dict[str, Path] = {}
    wanted = recipes()
    for number, recipe in enumerate(wanted, start=1):
        folders[recipe.name] = built(recipe, go, f"{number} of {len(wanted)}")
    programs = assembly.programs(folders["pulumi"], folders["language-python"])
    home = assembly.home(folders["plugin-docker"], folders["plugin-command"])
    return [f"PULUMI_BIN={programs}", f"PULUMI_HOME={home}"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/toolchain",
        description="A Pulumi that can run this project: the one on PATH, or one built here.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("ensure", help="find or build it; print PULUMI_BIN and PULUMI_HOME")
    commands.add_parser("go", help="print the Go that builds it, fetched if there is none")
    chosen = parser.parse_args(arguments).command
    # Ended like Ctrl-C: the compiler stops too, and its draft goes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for line in ensure() if chosen == "ensure" else [str(compiler().program())]:
            print(line)
    except ToolchainError as failure:
        say(f"error: {failure}")
        return 1
    except KeyboardInterrupt:
        say("Stopped. What was built so far is kept; the next run goes on from there.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
