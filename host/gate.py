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
    units = {f"triton@{each.stem}": each for each in instances.glob("*.env")}
    units |= {each.stem: each for each in servers.glob("*.env")}
    neighbours = frozenset(
        each
        for each, said in units.items()
        if _environment(said).get("HOST_STACK") == own.get("HOST_STACK")
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


def _environment(file: Path) -> dict[str, str]:
    """What systemd would make of it, as far as Berth writes such files: NAME=value lines."""
    try:
        text = file.read_text()
    except OSError:
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs}
