"""`berth-host`: the ledger of this host's claims, the gate of its units, and what is on it.

JSON goes in by standard input and comes out on standard output; what cannot be is
`{"refused": {"cause", "consequence", "fix", "at"}}` there, with status 0. Commands for people
print text, and refuse on standard error with status 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from host.ledger import BUSY_S, PATH
from models.refusal import Refusal


def main() -> int:
    """Run one command; its exit status."""
    options = _parser().parse_args()
    for_people = options.for_people(options)
    try:
        said = _run(options)
    except Refusal as refusal:
        if for_people:
            print(refusal, file=sys.stderr)
            return 1
        parts = {name: getattr(refusal, name) for name in ("cause", "consequence", "fix", "at")}
        said = {"refused": parts}
    if said is not None:
        print(said if isinstance(said, str) else json.dumps(said))
    return 0


def _run(options: argparse.Namespace) -> Any:
    try:
        return options.run(options)
    except PermissionError as error:
        raise Refusal(
            f"{error.filename} may not be used by this user",
            consequence="Nothing was changed.",
            fix="run this as root (`sudo`).",
        ) from None
    except OSError as error:  # A full disk, or one that is read-only.
        raise Refusal(
            f"{error.filename or 'this host'}: {error.strerror or error}",
            consequence="What was asked for may be half done.",
            fix="mend that, then run this again: it goes on where it was.",
        ) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="berth-host", description=__doc__.split("\n")[0])
    parser.add_argument("--ledger", type=Path, default=PATH, help=argparse.SUPPRESS)
    parser.add_argument("--wait", type=float, default=BUSY_S, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Any, words: str, for_people: Any) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=words)
        added.set_defaults(run=run, for_people=for_people)
        return added

    command("claim", _claim, "make a holder's claims what the JSON says", lambda _: False)
    release = command("release", _release, "release claims", lambda given: given.name is not None)
    release.add_argument("--name", help="this one, whoever holds it")
    claims = command("claims", _claims, "list all claims", lambda given: given.text)
    claims.add_argument("--text", action="store_true", help="a table for people")
    command("inventory", _inventory, "all that this host is and holds", lambda _: False)
    routes = command("routes", _routes, "a demo's routes in the gateway", lambda _: False)
    routes.add_argument("action", choices=("declare", "put", "close", "remove", "show"))
    gate = command("gate", _gate, "pass, or refuse a unit's start", lambda _: True)
    gate.add_argument("unit")
    gate.add_argument("--instances", type=Path, help=argparse.SUPPRESS)
    gate.add_argument("--servers", type=Path, help=argparse.SUPPRESS)
    hold = command("hold", _hold, "claim a GPU for something of your own", lambda _: True)
    hold.add_argument("--gpu", type=int, required=True, help="its index in nvidia-smi")
    hold.add_argument("--mib", type=_mib, help="memory that it keeps to; unset: all, for it alone")
    hold.add_argument("--owner", type=_words, required=True, help='who, such as "anna: notebook"')
    for name, run, words in (
        ("guard", _guard, "pass, or name who else stands on this host"),
        ("dismantle", _dismantle, "remove the ledger, unless others are in it"),
    ):
        added = command(name, run, words, lambda _: True)
        added.add_argument("--stack", required=True, help="project/stack of the host")
        added.add_argument("--repository", type=Path, help="look at its entries too")
    return parser


def _mib(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory in MiB")
    return int(text)


def _words(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("say who")
    return text.strip()


def _asked() -> dict[str, Any]:
    try:
        asked = json.loads(sys.stdin.read())
    except (ValueError, RecursionError) as error:
        raise Refusal(f"standard input is not JSON: {error}") from None
    if not isinstance(asked, dict):
        raise Refusal("standard input is no JSON object")
    return asked


# Imported where used: a claim, or a unit's start, does not wait for what only the inventory needs.
def _claim(options: argparse.Namespace) -> dict[str, Any]:
    from host.claims import claim

    return claim(options.ledger, _asked(), options.wait)


def _release(options: argparse.Namespace) -> dict[str, Any] | str:
    from host.claims import release, release_by_name

    if options.name is None:
        return release(options.ledger, _asked(), options.wait)
    gone = release_by_name(options.ledger, options.name, options.wait)
    return f"released {gone.name}: it was claimed by {gone.said()}"


def _claims(options: argparse.Namespace) -> dict[str, Any] | str:
    from host.claims import listed
    from host.listing import table

    found = listed(options.ledger, options.wait)
    return table(found) if options.text else found


def _inventory(options: argparse.Namespace) -> dict[str, Any]:
    from host.inventory import take

    return take(_asked(), options.ledger)


def _gate(options: argparse.Namespace) -> None:
    from host.gate import INSTANCES, SERVERS, check

    places = options.instances or INSTANCES, options.servers or SERVERS
    check(options.ledger, options.unit, *places, busy_s=options.wait)


def _routes(options: argparse.Namespace) -> dict[str, Any]:
    from host.gateway import Gateway
    from host.routes import ACTIONS

    return ACTIONS[options.action](Gateway(), _asked())


def _hold(options: argparse.Namespace) -> str:
    from host.claims import hold

    return hold(options.ledger, options.gpu, options.mib, options.owner, options.wait)


def _guard(options: argparse.Namespace) -> None:
    from host.guard import nobody_else

    nobody_else(options.ledger, options.stack, options.repository, options.wait)


def _dismantle(options: argparse.Namespace) -> None:
    from host.guard import dismantle

    dismantle(options.ledger, options.stack, options.wait)


if __name__ == "__main__":
    sys.exit(main())
