"""How long a role's clients are refused while it goes from Triton to vLLM, under constant load."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.bench.clock import Row, say
from tests.e2e.clients import Reached
from tests.e2e.constant_load import constant_load
from tests.e2e.host import TestHost, booted, until
from tests.e2e.test_16_swap_under_load import ARCHITECT, OTHERS, STACK, UNIT, sections
from tests.e2e.workspace import Workspace

TIMES = 3
READY = "Application startup complete"


def rows() -> list[Row]:
    """Medians over `TIMES` swaps."""
    with tempfile.TemporaryDirectory() as folder, booted("bench") as host:
        workspace = Workspace(Path(folder), host)
        try:
            return _measured(workspace, host)
        finally:
            workspace.down(STACK)
            workspace.end()


def _measured(workspace: Workspace, host: TestHost) -> list[Row]:
    shut, beyond, others = [], [], 0
    for number in range(TIMES):
        say(f"swap {number + 1} of {TIMES}")
        workspace.write_stack(STACK, sections(host, None))
        workspace.up(STACK)
        with constant_load(Reached.of(workspace, STACK), (ARCHITECT, *OTHERS)) as load:
            until(lambda: load.served(ARCHITECT) > 3, 60, "requests before")
            workspace.write_stack(STACK, sections(host, "vllm"))
            workspace.up(STACK)
            before = load.served(ARCHITECT)
            until(lambda: load.served(ARCHITECT) > before + 3, 60, "after")  # noqa: B023
        shut.append(load.shut_s(ARCHITECT))
        beyond.append(shut[-1] - own_start_s(host))
        others += sum(len(load.failed(role)) for role in OTHERS)
    middle = TIMES // 2
    return [
        ("role refused while its engine is swapped", f"{sorted(shut)[middle]:.1f} s", ""),
        ("… beyond the new engine's own start", f"{sorted(beyond)[middle]:.1f} s", "≤ 3 s"),
        ("… failed requests of other roles", str(others), "0"),
    ]


def own_start_s(host: TestHost) -> float:
    """From the unit's start to the server's word that it is up, in seconds."""
    lines = host.sh(f"journalctl -u {UNIT} -o json --since -5min | tail -400").splitlines()
    entries = [json.loads(line) for line in lines]
    up = next(each for each in reversed(entries) if READY in str(each.get("MESSAGE")))
    began = next(
        each
        for each in reversed(entries[: entries.index(up)])
        if str(each.get("MESSAGE")).startswith("Starting reference-architect")
    )
    return (int(up["__MONOTONIC_TIMESTAMP"]) - int(began["__MONOTONIC_TIMESTAMP"])) / 1e6
