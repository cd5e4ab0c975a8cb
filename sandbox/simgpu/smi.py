"""`nvidia-smi`: the queries that fleets are run with, in NVIDIA's exact formats and statuses."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .devices import CUDA_VERSION, DRIVER_VERSION, present, root_directory
from .failures import NVML, broken, lost_gpus
from .holders import Holder, holders
from .memory import used_mib
from .smi_fields import ALIASES, APP_FIELDS, GPU_FIELDS, AppField, Cell, Field, Reading
from .smi_table import table

LOST_STATUS = 15
BAD_ARGUMENT = 2


class BadArgumentError(Exception):
    """Ends nvidia-smi with status 2; the text goes to standard output, as the real one's does."""


def _options(arguments: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in ("-i", "--id") and not equals:
            value = rest.pop(0) if rest else ""
        if name not in (
            *("-i", "--id", "-L", "--list-gpus", "--version", "--format", "-h", "--help"),
            *("--query-gpu", "--query-compute-apps"),
        ):
            raise BadArgumentError(f"Invalid combination of input arguments. {word}")
        options[{"--id": "-i", "--list-gpus": "-L"}.get(name, name)] = value
    return options


def _readings(root: Path, wanted: str) -> list[Reading]:
    lost, gpus = lost_gpus(), present(root)
    readings = [
        Reading(gpu, index, used_mib(root, gpu), len(gpus))
        for index, gpu in enumerate(gpus)
        if gpu.index not in lost
    ]
    for gpu in gpus:
        if gpu.index in lost:
            text = f"Unable to determine the device handle for GPU{gpu.index}: {gpu.bus_id[4:]}"
            quiet = gpu.index in lost_gpus(quietly=True)
            print(f"{text}: Unknown Error", file=sys.stderr if quiet else sys.stdout)
    if not wanted:
        return readings
    chosen = []
    for name in wanted.split(","):
        match = [r for r in readings if name.lower() in (str(r.index), r.gpu.uuid.lower())]
        match = match or [r for r in readings if r.gpu.bus_id.endswith(name.upper())]
        if not match:
            raise BadArgumentError("No devices were found")
        chosen += match
    return chosen


def _format(options: dict[str, str]) -> tuple[bool, bool]:
    words = options.get("--format", "").split(",")
    if words[0] != "csv":
        raise BadArgumentError('"--format=" switch is missing or its value is invalid.')
    return "noheader" not in words, "nounits" not in words


def _cell(value: Cell, unit: str, units: bool) -> str:
    has_unit = unit and units and not str(value).startswith("[")
    return f"{value} {unit}" if has_unit else str(value)


def _print_row(cells: list[str]) -> None:
    print(", ".join(cells))


def _query_gpus(options: dict[str, str], readings: list[Reading]) -> None:
    names = [name.strip() for name in options["--query-gpu"].split(",")]
    unknown = [n for n in names if ALIASES.get(n, n) not in GPU_FIELDS]
    if unknown:
        raise BadArgumentError(f'Field "{unknown[0]}" is not a valid field to query.\n')
    fields: list[Field] = [GPU_FIELDS[ALIASES.get(n, n)] for n in names]
    header, units = _format(options)
    if header:
        _print_row([f.header for f in fields])
    now = time.strftime("%Y/%m/%d %H:%M:%S.000")
    for reading in readings:
        cells = [_cell(f.cell(reading), f.unit, units) for f in fields]
        _print_row([now if n == "timestamp" else c for n, c in zip(names, cells, strict=True)])


def _query_apps(options: dict[str, str], found: list[Holder]) -> None:
    names = [name.strip() for name in options["--query-compute-apps"].split(",")]
    unknown = [name for name in names if name not in APP_FIELDS]
    if unknown:
        raise BadArgumentError(f'Field "{unknown[0]}" is not a valid field to query.\n')
    fields: list[AppField] = [APP_FIELDS[name] for name in names]
    header, units = _format(options)
    if header:
        _print_row([f.header for f in fields])
    for holder in found:
        _print_row([_cell(f.cell(holder), f.unit, units) for f in fields])


def _print_version() -> None:
    print(f"NVIDIA-SMI version  : {DRIVER_VERSION}")
    print(f"NVML version        : {NVML}")
    print(f"DRIVER version      : {DRIVER_VERSION}")
    print(f"CUDA Version        : {CUDA_VERSION}")


def run(arguments: Sequence[str]) -> int:
    """Answer as nvidia-smi would; the exit status is its own."""
    options = _options(arguments)
    failure = broken()
    if failure:
        print(failure.text)
        return failure.status
    root = root_directory()
    if "--version" in options:
        _print_version()
        return 0
    readings = _readings(root, options.get("-i", ""))
    if not present(root):
        print("No devices were found")
        return 6
    owned: list[tuple[int, Holder]] = [(r.index, h) for r in readings for h in holders(root, r.gpu)]
    if "-L" in options:
        for reading in readings:
            print(f"GPU {reading.index}: {reading.gpu.name} (UUID: {reading.gpu.uuid})")
    elif "--query-gpu" in options:
        _query_gpus(options, readings)
    elif "--query-compute-apps" in options:
        _query_apps(options, [holder for _, holder in owned])
    else:
        print(table(readings, owned))
    loud = lost_gpus() - lost_gpus(quietly=True)
    return LOST_STATUS if loud & {gpu.index for gpu in present(root)} else 0


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        return run(sys.argv[1:] if arguments is None else arguments)
    except BadArgumentError as error:
        print(error)
        return BAD_ARGUMENT


if __name__ == "__main__":
    sys.exit(main())
