"""Recorded inventories: what a host was when it was asked last, as files that are reviewed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from models.facts_age import taken
from models.inventory import SCHEMA_VERSION, Inventory
from models.refusal import Refusal, Refusals
from models.validation import parse

DIRECTORY = "inventory"
SOURCE = "BERTH_INVENTORY"
"""Environment variable that takes the place of `berth:inventory` for one run."""
WIDTH = 180
"""A tensor of a weights directory fits on a line."""
_UNTOUCHED = "Nothing says what the host is and holds, so nothing was judged."


def file_name(host: str) -> str:
    """Where a host's inventory is recorded, relative to the project."""
    return f"{DIRECTORY}/{host}.json"


def recorded(project: Path, hosts: Iterable[str]) -> dict[str, Inventory]:
    """Host → what its file says.

    Raises:
        Refusals: one for each file that is missing, broken, another host's or a newer Berth's.
    """
    found: dict[str, Inventory] = {}
    refusals: list[Refusal] = []
    for host in hosts:
        try:
            found[host] = read(project, host)
        except Refusals as several:
            refusals += several.refusals
        except Refusal as refusal:
            refusals.append(refusal)
    if refusals:
        raise Refusals(refusals)
    return found


def read(project: Path, host: str) -> Inventory:
    """One host's recorded inventory.

    Raises:
        Refusal: as `recorded`.
    """
    at = file_name(host)
    try:
        content = json.loads((project / at).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Refusal(
            f"nothing is recorded of host {host}",
            consequence=_UNTOUCHED,
            fix=f"where the host can be reached: `berth discover {host}`; then commit {at}.",
            at=at,
        ) from None
    except OSError as error:
        raise _anew(host, error.strerror or str(error), at) from None
    except json.JSONDecodeError as error:
        raise _anew(host, f"no JSON: {error.msg}", f"{at}:{error.lineno}:{error.colno}") from None
    except (UnicodeDecodeError, RecursionError):
        raise _anew(host, "no JSON", at) from None
    if not isinstance(content, dict):
        raise _anew(host, "no inventory: it is no object", at)
    _see_that_it_is_ours(content, host, at)
    inventory = parse(Inventory, content, at)
    try:
        taken(inventory.taken_at)
    except ValueError:
        raise _anew(host, f"`{inventory.taken_at}` is no moment", f"{at}: taken_at") from None
    return inventory


def _see_that_it_is_ours(content: dict[str, Any], host: str, at: str) -> None:
    version = content.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise Refusal(
            f"written by a newer Berth: its schema is {version}, this one reads {SCHEMA_VERSION}",
            consequence=_UNTOUCHED,
            fix="take the newer Berth here too, or discover the host with this one.",
            at=f"{at}: schema_version",
        )
    if content.get("host") != host:
        of = f"of host {content['host']}" if content.get("host") else "of no host that it names"
        raise _anew(host, f"this is the inventory {of}, not of {host}", f"{at}: host")


def _anew(host: str, cause: str, at: str) -> Refusal:
    fix = f"take it again: `berth discover {host}`, or restore the committed file."
    return Refusal(cause, consequence=_UNTOUCHED, fix=fix, at=at)


def text(host: str, inventory: Inventory) -> str:
    """The file's content: the same for the same facts, one fact a line, so that a diff reads well.

    Lists are in the order of what names their members, whatever order the host gave them in, and
    free disk is in whole GiB, so that a line in a log is no change.
    """
    content = inventory.model_dump(mode="json")
    if inventory.free_mib > 1024:
        content["free_mib"] -= inventory.free_mib % 1024
    content["host"] = host
    content["gpus"]["found"].sort(key=lambda gpu: (gpu["index"], gpu["uuid"]))
    content["processes"].sort(key=lambda process: (process["gpu"], process["pid"]))
    content["docker"]["containers"].sort(key=lambda container: container["name"])
    content["images"].sort(key=lambda image: image["reference"])
    content["claims"].sort(key=lambda claim: claim["name"])
    content["ports"].sort()
    return f"{_laid_out(content, 0)}\n"


def _laid_out(value: object, depth: int) -> str:
    """JSON with sorted keys, on one line where that fits: a tensor is a line, and not twenty."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if (depth and 2 * depth + len(line) <= WIDTH) or not value:
        return line
    if isinstance(value, dict):
        inner = [
            f"{json.dumps(key, ensure_ascii=False)}: {_laid_out(value[key], depth + 1)}"
            for key in sorted(value)
        ]
        opened, closed = "{}"
    elif isinstance(value, list):
        inner = [_laid_out(each, depth + 1) for each in value]
        opened, closed = "[]"
    else:
        return line
    space = "  " * (depth + 1)
    body = ",\n".join(space + each for each in inner)
    return f"{opened}\n{body}\n{'  ' * depth}{closed}"


def write(project: Path, host: str, inventory: Inventory) -> Path:
    """Record an inventory, as a whole or not at all; its file."""
    file = project / file_name(host)
    file.parent.mkdir(exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as handle:
            handle.write(text(host, inventory))
            handle.flush()
            os.fsync(handle.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
    return file
