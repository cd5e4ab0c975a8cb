"""Previews of ten to a hundred hosts of eight GPUs, judged by recorded inventories."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from config.inventory import write
from models.inventory import Inventory
from tests.bench.clock import Row, say, seconds
from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace

SIZES = (10, 30, 100)
GPUS = 8
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF"
IMAGE = f"tritonserver:26.06-vllm-python-py3@sha256:{0:064x}"
MODEL = "llama-3.2-1b-instruct"


def _uuid(host: int, gpu: int) -> str:
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{host}/{gpu}')}"


def sections(hosts: int) -> dict[str, Any]:
    """A stack of that many hosts, one narrow instance and one model on each GPU."""
    there = range(hosts)
    named = [(host, gpu, f"triton@h{host}-{gpu}") for host in there for gpu in range(GPUS)]
    return {
        "inventory": "recorded",
        "hosts": {
            f"host-{host}": {
                "ssh": {"address": f"host-{host}.invalid", "host_key": KEY},
                "gpus": [
                    {"uuid": _uuid(host, gpu), "index": gpu, "memory_mib": 23034}
                    for gpu in range(GPUS)
                ],
            }
            for host in there
        },
        "instances": {
            name: {
                "host": f"host-{host}",
                "gpus": [_uuid(host, gpu)],
                "image": IMAGE,
                "http_port": 8000 + gpu,
                "metrics_port": 8100 + gpu,
            }
            for host, gpu, name in named
        },
        "demo": {
            "name": "many",
            "roles": {f"r{h}-{g}": {"model": MODEL, "instance": name} for h, g, name in named},
        },
    }


def inventory(host: int) -> Inventory:
    """A host as it would say that it is: nothing on it yet."""
    gpus = [
        {
            "uuid": _uuid(host, gpu),
            "index": gpu,
            "name": "NVIDIA L4",
            "memory_mib": 23034,
            "reserved_mib": 469,
            "used_mib": 0,
        }
        for gpu in range(GPUS)
    ]
    docker = {
        "installed": True,
        "version": "28.2.2",
        "said": "",
        "user_may": True,
        "hook": True,
        "cdi": True,
        "containers": [],
    }
    return Inventory.model_validate(
        {
            "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "systemd": True,
            "driver": "610.43.02",
            "gpus": {"status": 0, "said": "", "found": gpus},
            "processes": [],
            "docker": docker,
            "ports": [22],
            "units": {},
            "weights": {},
            "free_mib": 100_000,
        }
    )


def rows() -> list[Row]:
    """The first and the last size, and what each host costs in them."""
    with tempfile.TemporaryDirectory() as base:
        root = Path(base)
        (root / "none").mkdir()
        (root / "project").mkdir()
        workspace = Workspace(root / "project", TestHost("none", root / "none"))
        for host in range(max(SIZES)):
            write(workspace.folder, f"host-{host}", inventory(host))
        took = {size: _preview(workspace, size) for size in SIZES}
    small, large = min(SIZES), max(SIZES)
    growth = took[large] / took[small]
    shown = ", ".join(f"{size}: {took[size]:.1f} s" for size in SIZES)
    return [
        (
            f"preview of {large} hosts of {GPUS} GPUs ÷ of {small}, recorded ({shown})",
            f"{growth:.1f}",
            f"≤ {large // small}",
        )
    ]


def _preview(workspace: Workspace, size: int) -> float:
    stack = f"hosts-{size}"
    say(f"preview of {size} hosts")
    workspace.write_stack(stack, sections(size))

    def pulumi(*words: str) -> None:
        subprocess.run(
            ["pulumi", *words, "-s", stack, "--non-interactive", "--suppress-progress"],
            cwd=workspace.folder,
            env=workspace.environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    pulumi("stack", "init")
    judged = ("preview", "--refresh=false", "--policy-pack", "policy")
    return statistics.median(seconds(lambda: pulumi(*judged)) for _ in range(3))
