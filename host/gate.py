"""The gate of a unit's start, by what the unit's environment file says of it."""

from __future__ import annotations

from pathlib import Path

from host.ledger import BUSY_S, reading
from models.refusal import Refusal, Refusals
from models.start_gate import StartingUnit, refused_start

INSTANCES = Path("/etc/berth/instances")


def check(path: Path, unit: str, instances: Path = INSTANCES, busy_s: float = BUSY_S) -> None:
    """Pass, or say why the unit must not start.

    Args:
        path: the ledger.
        unit: `triton@2`, with or without `.service`.
        instances: directory of the units' environment files.
        busy_s: how long others are waited for, in seconds.

    Raises:
        Refusal: a stranger's claim is on one of its GPUs, or that cannot be known.
    """
    name = unit[: -len(".service")] if unit.endswith(".service") else unit
    kind, _, number = name.partition("@")
    own = _environment(instances / f"{number}.env")
    if not own.get("GPUS"):
        raise Refusal(
            f"{instances / f'{number}.env'} does not say which GPUs {name} has",
            consequence=f"{name} is not started.",
            fix="`pulumi up` the host's stack: it writes the file anew.",
        )
    stack = own.get("HOST_STACK", "")
    declared = {file.stem for suffix in ("env", "key") for file in instances.glob(f"*.{suffix}")}
    neighbours = frozenset(
        f"{kind}@{each}" for each in declared if _stack(instances / f"{each}.env", stack) == stack
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


def _stack(file: Path, asking: str) -> str:
    """An instance's host stack. One with a key alone is just being made anew: that of who asks."""
    return _environment(file).get("HOST_STACK", "") if file.exists() else asking


def _environment(file: Path) -> dict[str, str]:
    """What systemd would make of it, as far as Berth writes such files: NAME=value lines."""
    try:
        text = file.read_text()
    except OSError:
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs}
