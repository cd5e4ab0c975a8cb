"""Previews of ten to a hundred hosts of eight GPUs, judged by recorded inventories."""

from __future__ import annotations

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

SIZES = (10, 100)
OWN_SIZES = (10, 40)
"""A host stack's own config ends at 128 KiB: Pulumi hands it over in one environment variable."""
GPUS = 8
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF"
IMAGE = f"tritonserver:26.06-vllm-python-py3@sha256:{0:064x}"
MODEL = "llama-3.2-1b-instruct"


def _uuid(host: int, gpu: int) -> str:
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{host}/{gpu}')}"


def _named(hosts: int) -> list[tuple[int, int, str]]:
    return [(host, gpu, f"triton@h{host}-{gpu}") for host in range(hosts) for gpu in range(GPUS)]


def host_stack(hosts: int) -> dict[str, Any]:
    """So many hosts, with one narrow instance on each GPU."""
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
            for host in range(hosts)
        },
        "instances": {
            name: {
                "host": f"host-{host}",
                "gpus": [_uuid(host, gpu)],
                "image": IMAGE,
                "http_port": 8000 + gpu,
                "metrics_port": 8100 + gpu,
            }
            for host, gpu, name in _named(hosts)
        },
    }


def demo_stack(hosts: int) -> dict[str, Any]:
    """One model on each GPU of that many hosts."""
    return {
        "inventory": "recorded",
        "host_stack": f"hosts-{hosts}",
        "demo": {
            "name": "many",
            "roles": {
                f"r{h}-{g}": {"model": MODEL, "instance": name} for h, g, name in _named(hosts)
            },
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
            "units": {f"triton@h{host}-{gpu}.service": "active" for gpu in range(GPUS)},
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
        for size in {*SIZES, *OWN_SIZES}:
            workspace.write_stack(f"hosts-{size}", host_stack(size))
            workspace.write_stack(f"demo-{size}", demo_stack(size))
        return [
            _growth(workspace, "hosts", f"their {GPUS} instances each", OWN_SIZES),
            _growth(workspace, "demo", f"a demo's model on each of their {GPUS} GPUs", SIZES),
        ]


def _growth(workspace: Workspace, kind: str, what: str, sizes: tuple[int, int]) -> Row:
    took = {size: _preview(workspace, f"{kind}-{size}") for size in sizes}
    small, large = sizes
    shown = f"{took[large]:.1f} s ÷ {took[small]:.1f} s = {took[large] / took[small]:.1f}"
    return (f"preview of {large} hosts ÷ of {small}: {what}", shown, f"≤ {large // small}")


def _preview(workspace: Workspace, stack: str) -> float:
    say(f"preview of {stack}")
    workspace.init(stack)

    def preview() -> None:
        status, said = workspace.pulumi(
            "preview", "-s", stack, "--refresh=false", "--policy-pack", "policy"
        )
        assert status == 0, said

    return seconds(preview)
