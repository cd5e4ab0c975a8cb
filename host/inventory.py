"""All that this host is and holds, in one answer: the JSON of `models.inventory.Inventory`.

Every command is bounded, and what is missing is an empty value: judging is the caller's.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from host import weights
from host.claims import listed, now
from host.command import run
from host.docker import docker
from host.gate import SERVERS
from host.gpus import container_of, gpus, processes
from host.images import built
from host.ledger import PATH, changing
from models.refusal import Refusal

SCHEMA_VERSION = 1
INSTALLED = Path("/usr/local/bin/berth-host")
SERVICES = Path("/etc/berth/services")
"""A file for each of the gateway and the adapter: `{"unit": …, "port": …, "stack": …}`."""
CACHE = "weights.json"
"""Beside the ledger."""
IMAGES = "images.json"
"""There too."""
LEDGER_WAIT_S = 20.0


def take(
    asked: Mapping[str, Any], ledger: Path = PATH, installed: Path = INSTALLED
) -> dict[str, Any]:
    """The inventory.

    Args:
        asked: {"user": login user, "data_dir": the host's data directory}.
        ledger: the ledger's file; not made here.
        installed: where this program is installed, if it is.
    """
    data_dir = Path(asked["data_dir"])
    # Most of the time is spent waiting for other programs; nvidia-smi may take seconds.
    with ThreadPoolExecutor(max_workers=7) as together:
        cards = together.submit(gpus)
        holders = together.submit(processes)
        docking = together.submit(docker, asked["user"])
        images = together.submit(built, ledger.parent / IMAGES)
        running = together.submit(units)
        held = together.submit(weights.read_all, data_dir / "weights", _cache(ledger))
    engine = docking.result()
    instances = {each.pop("id"): each["instance"] for each in engine["containers"]}
    _remember(ledger, cards.result()["gpus"]["found"])
    claims, trouble = _claims(ledger)
    return {
        "schema_version": SCHEMA_VERSION,
        "taken_at": now(),
        "berth_host": _version(installed),
        "systemd": Path("/run/systemd/system").is_dir(),
        **cards.result(),
        "processes": [
            {**row, "instance": instances.get(container_of(row["pid"]), "")}
            for row in holders.result()
        ],
        "docker": engine,
        "images": images.result(),
        "ports": listening_ports(),
        "units": running.result(),
        "services": services(),
        "weights": held.result(),
        "claims": claims,
        "ledger_trouble": trouble,
        "free_mib": free_mib(data_dir),
    }


def listening_ports() -> list[int]:
    """TCP ports that something listens on (proc(5), state 0A)."""
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            for line in Path(table).read_text().splitlines()[1:]:
                cells = line.split()
                if cells[3] == "0A":
                    ports.add(int(cells[1].rpartition(":")[2], 16))
    return sorted(ports)


def units() -> dict[str, str]:
    """Berth's units and their states."""
    own = [f"{file.stem}.service" for file in sorted(SERVERS.glob("*.env"))] + sorted(services())
    status, said = run(
        "systemctl", "list-units", "--all", "--plain", "--no-legend", "triton@*.service", *own
    )
    rows = [line.split() for line in said.splitlines()] if status == 0 else []
    return {row[0]: row[2] for row in sorted(rows) if len(row) >= 4}


def services(folder: Path = SERVICES) -> dict[str, dict[str, Any]]:
    """Unit → its port and its stack, of what is set up beside the instances."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        try:
            said = json.loads(file.read_text())
            found[str(said["unit"])] = {"port": int(said["port"]), "stack": str(said["stack"])}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def free_mib(path: Path) -> int:
    """Free disk at `path`, or at its nearest parent that exists, in MiB."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free // 2**20


def _claims(ledger: Path) -> tuple[list[dict[str, Any]], str]:
    try:
        return listed(ledger, LEDGER_WAIT_S)["claims"], ""
    except Refusal as refusal:
        return [], refusal.cause


def _remember(ledger: Path, found: list[dict[str, Any]]) -> None:
    """Cards change; the ledger is told, where there is one. What ails it is told elsewhere."""
    if not found or not ledger.exists():
        return
    try:
        known = {(g["uuid"], g["index"], g["cuda_mib"]) for g in listed(ledger)["gpus"]}
        now_there = {(g["uuid"], g["index"], g["memory_mib"] - g["reserved_mib"]) for g in found}
        if known != now_there:
            with changing(ledger, LEDGER_WAIT_S) as open_ledger:
                open_ledger.know(found)
    except Refusal:
        return


def _cache(ledger: Path) -> Path | None:
    """Nothing is left on a host that was not set up."""
    folder = ledger.parent
    return folder / CACHE if folder.is_dir() and os.access(str(folder), os.W_OK) else None


def _version(installed: Path) -> str:
    try:
        return hashlib.sha256(installed.read_bytes()).hexdigest()[:12]
    except OSError:
        return ""
