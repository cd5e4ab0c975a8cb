"""How much time Berth adds, on a sandbox host of its own with six GPUs."""

from __future__ import annotations

import copy
import re
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.clock import RUNS, Row, say, seconds
from tests.e2e.host import TestHost, booted, until
from tests.e2e.workspace import Workspace, only, reference

LOAD_SECONDS_PER_GIB = "0.5"
"""Of the simulated engine; a disk that reads 2 GiB/s. The default, 0.06, is so short that what is
measured would be how fast two cores start Python."""
SENTRY = "reference.gemma-4-e2b-it"
EMPTY = "name: empty\nruntime: {{name: python, options: {{toolchain: pip, virtualenv: {venv}}}}}\n"
LOADED = re.compile(r"TritonModel (\S+) created \((\d+(?:\.\d+)?)s\)")


def five_models(host: TestHost) -> dict[str, Any]:
    """Five servers on six GPUs, each with one model: four E4Bs and the wide 31B."""
    sections = reference(host)
    gpus = host.description["gpus"]
    sections["hosts"]["sandbox"]["gpus"] = gpus
    wide = copy.deepcopy(sections["instances"]["triton@wide-01"])
    sections["instances"]["triton@wide-01"] = wide | {"gpus": [g["uuid"] for g in gpus[4:6]]}
    for instance in sections["instances"].values():
        instance["environment"] = {"VLLM_LOAD_SECONDS_PER_GIB": LOAD_SECONDS_PER_GIB}
    roles = {f"guard-{n}": ("gemma-4-e4b-it", f"triton@{n}") for n in range(4)}
    roles["architect"] = ("gemma-4-31b-it-nvfp4", "triton@wide-01")
    return only(sections, *sections["instances"], **roles)


def previews(workspace: Workspace, folder: Path) -> tuple[float, float, float]:
    """Median seconds of a preview of an empty program, of the stack, and of it with the pack."""
    (folder / "Pulumi.yaml").write_text(EMPTY.format(venv=workspace.folder / ".venv"))
    (folder / "__main__.py").write_text("")

    def pulumi(where: Path, *words: str) -> None:
        subprocess.run(
            ["pulumi", *words, "--non-interactive"],
            cwd=where,
            env=workspace.environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    pulumi(folder, "stack", "init", "empty")
    ours = ("preview", "-s", "bench")
    empty, plain, judged = [], [], []
    # By turns, so that whatever else the machine does meets all three.
    for _ in range(RUNS):
        empty.append(seconds(lambda: pulumi(folder, "preview", "-s", "empty")))
        plain.append(seconds(lambda: pulumi(workspace.folder, *ours)))
        judged.append(seconds(lambda: pulumi(workspace.folder, *ours, "--policy-pack", "policy")))
    return statistics.median(empty), statistics.median(plain), statistics.median(judged)


def by_curl(host: TestHost) -> float:
    """Seconds to unload and load a model by hand."""

    def reload() -> None:
        host.control("3", 8003, f"/v2/repository/models/{SENTRY}/unload")
        until(lambda: host.gpu_mib()[3] == 0, 60, "the unload")
        host.control("3", 8003, f"/v2/repository/models/{SENTRY}/load")
        assert host.answers(8003, SENTRY)

    return seconds(reload)


def figures(workspace: Workspace, host: TestHost, folder: Path) -> list[Row]:
    """Everything that needs the host."""
    rows = []
    say("five models on five servers")
    workspace.write_stack("bench", five_models(host))
    status, said = workspace.berth("up", "bench")
    assert status == 0, said
    loads = {name: float(s) for name, s in LOADED.findall(said)}
    before = [host.loads(name) for name in ("0", "1", "2", "3", "wide-01")]
    workspace.write_stack("bench", {k: v for k, v in five_models(host).items() if k != "demo"})
    workspace.up("bench")
    alone: dict[str, float] = {}
    for name in ("triton@0", "triton@wide-01"):
        sections = five_models(host)
        roles = sections["demo"]["roles"]
        sections["demo"]["roles"] = {r: v for r, v in roles.items() if v["instance"] == name}
        workspace.write_stack("bench", sections)
        _, said = workspace.berth("up", "bench")
        alone |= {n: float(s) for n, s in LOADED.findall(said)}
        workspace.write_stack("bench", {k: v for k, v in sections.items() if k != "demo"})
        workspace.up("bench")
    together, slowest = max(loads.values()), max(alone.values())
    rows.append(
        (
            f"{len(before)} models together ÷ slowest alone",
            f"{together:.1f} s ÷ {slowest:.1f} s = {together / slowest:.2f}",
            "≤ 1.2",
        )
    )
    workspace.write_stack("bench", reference(host))
    workspace.up("bench")
    say("previews")
    empty, plain, judged = previews(workspace, folder)
    rows.append(
        (
            "preview of dev, policy pack on ÷ empty program",
            f"{judged:.2f} s ÷ {empty:.2f} s = {judged / empty:.2f}",
            "≤ 1.6",
        )
    )
    rows.append(
        (
            "what the policy pack adds to a preview of dev",
            f"{judged:.2f} s − {plain:.2f} s = {100 * (judged / plain - 1):.0f} %",
            "≤ 25 %",
        )
    )
    say("up with nothing to change")
    same = statistics.median(seconds(lambda: workspace.up("bench")) for _ in range(RUNS))
    rows.append(("up that changes nothing, answers included", f"{same:.1f} s", "≤ 15 s"))
    say("changing one model")
    curl = statistics.median(by_curl(host) for _ in range(3))
    changes = []
    for length in (4096, 8192, 4096):
        workspace.change_model("gemma-4-e2b-it", max_model_len=length)
        changes.append(
            seconds(lambda: workspace.pulumi("up", "--yes", "--skip-preview", "-s", "bench"))
        )
    pulumi = statistics.median(changes)
    rows.append(
        (
            "changing one model by Pulumi − by curl",
            f"{pulumi:.1f} s − {curl:.1f} s = {pulumi - curl:.1f} s",
            "≤ 3 s",
        )
    )
    workspace.down("bench")
    return rows


def rows() -> list[Row]:
    """Boots the host, measures, and takes it away."""
    say("a sandbox host with six GPUs")
    with tempfile.TemporaryDirectory() as base, booted("bench", "--gpus", "6") as host:
        root = Path(base)
        (root / "project").mkdir()
        (root / "empty").mkdir()
        return figures(Workspace(root / "project", host), host, root / "empty")
