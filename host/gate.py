"""The gate of a unit's start, by what the unit's environment file says of it."""

from __future__ import annotations

from pathlib import Path

from host.ledger import BUSY_S, reading
from models.refusal import Refusal, Refusals
from models.start_gate import StartingUnit, refused_start

INSTANCES = Path("/etc/berth/instances")
SERVERS = Path("/etc/berth/servers")


def check(
    path: Path,
    unit: str,
    instances: Path = INSTANCES,
    servers: Path = SERVERS,
    busy_s: float = BUSY_S,
) -> None:
    """Pass, or say why the unit must not start.

    Args:
        path: the ledger.
        unit: `triton@2` or `shop-architect`, with or without `.service`.
        instances: directory of the environment files of Triton's units.
        servers: directory of those of servers of one model's own.
        busy_s: how long others are waited for, in seconds.

    Raises:
        Refusal: a stranger's claim is on one of its GPUs, or that cannot be known.
    """
    name = unit[: -len(".service")] if unit.endswith(".service") else unit
    _, at, number = name.partition("@")
    file = instances / f"{number}.env" if at else servers / f"{name}.env"
    own = _environment(file)
    if not own.get("GPUS"):
        raise Refusal(
            f"{file} does not say which GPUs {name} has",
            consequence=f"{name} is not started.",
            fix="`pulumi up` the stack that declares it: it writes the file anew.",
        )
    stack = own.get("HOST_STACK", "")
    units = {f"triton@{each.stem}": each for each in _declared(instances)}
    units |= {each.stem: each for each in _declared(servers)}
    neighbours = frozenset(
        each for each, file in units.items() if _stack(file.with_suffix(".env"), stack) == stack
    )
    starting = StartingUnit(
        instance=name,
        gpus=tuple(own["GPUS"].split(",")),
        on_demand=own.get("LOADS") == "on-demand",
        neighbours=neighbours,
    )
    with reading(path, busy_s) as ledger:
        if ledger is None:
            return
        indexes = {uuid: room.index for (_, uuid), room in ledger.rooms("").items()}
        refusals = refused_start(starting, ledger.claims(), indexes)
    if refusals:
        raise Refusals(refusals)


def _declared(place: Path) -> tuple[Path, ...]:
    """The units of a directory: each has a key, and an environment unless it is made anew."""
    return (*place.glob("*.env"), *place.glob("*.key"))


def _stack(file: Path, asking: str) -> str:
    """A unit's host stack. One with a key alone is just being made anew: that of who asks."""
    return _environment(file).get("HOST_STACK", "") if file.exists() else asking


def _environment(file: Path) -> dict[str, str]:
    """What systemd would make of it, as far as Berth writes such files: NAME=value lines."""
    try:
        text = file.read_text()
    except OSError:
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs}
