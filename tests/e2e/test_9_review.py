"""A change is previewed and judged where no host can be reached, by what was recorded of it.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.host import ROOT, TestHost, until
from tests.e2e.workspace import COLOUR, TIMEOUT_S, Workspace, only, reference

pytestmark = pytest.mark.usefixtures("in_use")
SENTRY = "berth/shop/shop: sentry (gemma-4-e2b-it on triton@3)"
SENTRY_MIB, L4_MIB = 14720, 22565
FOREIGN_MIB = 9000


def demo(name: str, instance: str) -> dict[str, Any]:
    roles = {"clerk": {"model": "gemma-4-e4b-it", "instance": instance}}
    return {
        "host_stack": "base",
        "inventory": "recorded",
        "demo": {"name": name, "roles": roles},
    }


@pytest.fixture(scope="module")
def in_use(workspace: Workspace, host: TestHost) -> Iterator[None]:
    """A host with another stack's model on GPU 3 and a stranger on GPU 1."""
    base = only(reference(host), "triton@0", "triton@1", "triton@2", "triton@3")
    workspace.write_stack("base", base)
    sentry = {"sentry": {"model": "gemma-4-e2b-it", "instance": "triton@3"}}
    workspace.write_stack("shop", {"host_stack": "base", "demo": {"name": "shop", "roles": sentry}})
    workspace.up("base")
    workspace.up("shop")
    host.sh(f"setsid simgpu-hold --gpu 1 --mib {FOREIGN_MIB} >/dev/null 2>&1 &")
    until(lambda: host.gpu_mib()[1] >= FOREIGN_MIB, 10, "the stranger")
    yield
    host.sh(f"kill {stranger(host)}", ok=False)
    workspace.down("shop")
    workspace.down("base")


def stranger(host: TestHost) -> str:
    """The pid of the process that is not Berth's."""
    return host.sh("pgrep -f 'simgpu-hold --gpu [1]' | tail -1")


@pytest.fixture(scope="module")
def cut_off(host: TestHost) -> Iterator[None]:
    """The host does not answer."""
    subprocess.run(["docker", "pause", host.name], check=True, capture_output=True)
    yield
    subprocess.run(["docker", "unpause", host.name], check=True, capture_output=True)


@pytest.fixture(scope="module")
def discovered(workspace: Workspace) -> str:
    status, said = workspace.berth("discover", "sandbox")
    assert status == 0, said
    return said


@pytest.fixture(scope="module")
def seen(discovered: str, cut_off: None) -> None:
    """Recorded, and then out of reach."""
    del discovered, cut_off


def previewed(workspace: Workspace, stack: str, sections: dict[str, Any]) -> tuple[int, str]:
    workspace.write_stack(stack, sections)
    status, said = workspace.berth("preview", stack)
    assert "Traceback" not in said, said
    return status, said


def line_of(said: str, *words: str) -> str:
    """The first line with all these words, its spaces made one."""
    lines = [" ".join(line.split()) for line in said.splitlines()]
    return next((line for line in lines if all(word in line for word in words)), f"not in: {said}")


def test_discover_shows_who_holds_what_and_records_it(
    workspace: Workspace, discovered: str, host: TestHost
) -> None:
    assert f"{SENTRY_MIB} ledger {SENTRY} since" in line_of(discovered, "sentry")
    process = f"(pid {stranger(host)})"
    assert f"{FOREIGN_MIB} not Berth's" in line_of(discovered, process)
    recorded = json.loads((workspace.folder / "inventory/sandbox.json").read_text())
    assert [claim["owner"] for claim in recorded["claims"]] == ["berth/shop/shop"]
    assert [each["mib"] for each in recorded["processes"] if not each["instance"]] == [FOREIGN_MIB]


def test_an_unchanged_host_is_recorded_alike(workspace: Workspace, discovered: str) -> None:
    del discovered
    before = (workspace.folder / "inventory/sandbox.json").read_text().splitlines()
    status, said = workspace.berth("discover", "sandbox")
    assert status == 0
    assert "nothing changed" in said
    after = (workspace.folder / "inventory/sandbox.json").read_text().splitlines()
    differs = [new for old, new in zip(before, after, strict=True) if old != new]
    assert all('"taken_at"' in line for line in differs)


def test_no_secret_is_recorded(workspace: Workspace, host: TestHost) -> None:
    recorded = (workspace.folder / "inventory/sandbox.json").read_text()
    keys = host.sh("for key in /etc/berth/instances/*.key; do cat $key; echo; done").split()
    keys += (host.directory / "id_ed25519").read_text().splitlines()[1:-1]
    keys += (host.directory / "host_key.pub").read_text().split()[1:2]
    assert len(keys) > 5
    assert not [key for key in keys if key in recorded]
    assert "ssh" not in recorded


@pytest.mark.usefixtures("seen")
def test_a_live_preview_does_not_get_through(workspace: Workspace) -> None:
    workspace.write_stack("desk", demo("desk", "triton@0"))
    status, said = workspace.berth("preview", "desk", "--live")
    assert status != 0
    assert "host" in said
    assert "Traceback" not in said


@pytest.mark.usefixtures("seen")
def test_a_change_that_fits_passes_and_says_how_old_its_facts_are(workspace: Workspace) -> None:
    status, said = previewed(workspace, "desk", demo("desk", "triton@0"))
    assert status == 0, said
    assert re.search(
        r"host sandbox: facts of \d{4}-\d\d-\d\d \d\d:\d\d UTC, .* \(inventory/sandbox.json\)", said
    )
    assert f"{SENTRY_MIB} ledger {SENTRY} since" in line_of(said, "sentry")
    clerk = line_of(said, "this plan", "berth/desk/desk: clerk (gemma-4-e4b-it on triton@0)")
    mib = int(clerk.split()[0])
    gpu = line_of(said, "GPU 0", f"{mib} taken")
    assert f"{L4_MIB} in all" in gpu
    assert f"{L4_MIB - mib} free" in gpu
    assert "OVERLAP" not in said


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("stack", ["base", "shop"])
def test_a_stack_that_is_deployed_shows_no_change_where_no_keys_are(
    workspace: Workspace, stack: str
) -> None:
    keys = workspace.folder / ".berth/sandbox"
    hidden = keys.rename(keys.with_name("hidden"))
    try:
        status, said = workspace.berth("preview", stack, "--recorded")
    finally:
        hidden.rename(keys)
    assert status == 0, said
    assert "unchanged" in said
    assert not re.search(r"\d+ to (create|update|replace|delete)", said), said


@pytest.mark.usefixtures("seen")
def test_a_second_demo_on_a_taken_gpu_is_refused_with_its_owner_and_the_map(
    workspace: Workspace,
) -> None:
    status, said = previewed(workspace, "desk", demo("desk", "triton@3"))
    assert status != 0
    refusal = line_of(said, "error: host sandbox: GPU 3")
    assert f"{SENTRY} since" in refusal
    assert f"{SENTRY_MIB} MiB" in refusal
    assert "berth/desk/desk: clerk (gemma-4-e4b-it on triton@3)" in refusal
    marked = line_of(said, "<== OVERLAP")
    assert marked.startswith("GPU 3")
    assert "too many" in marked
    assert documented("```text\n(.*?)```") <= set(alike(said))
    assert "Fix: set `instance: triton@" in said
    way_out = re.search(r"Fix: set `instance: (triton@\d)`", said)
    assert way_out is not None
    status, said = previewed(workspace, "desk", demo("desk", way_out[1]))
    assert status == 0, said


@pytest.mark.usefixtures("seen")
def test_what_a_stranger_holds_is_named_and_not_free(workspace: Workspace) -> None:
    status, said = previewed(workspace, "desk", demo("desk", "triton@1"))
    assert status != 0
    stranger_said = line_of(said, "not Berth's and holding memory")
    assert f"of which {L4_MIB - FOREIGN_MIB} MiB are left" in stranger_said
    assert f"{FOREIGN_MIB} MiB" in stranger_said
    shown = line_of(said, f"{FOREIGN_MIB} not Berth's", "(pid ")
    assert shown.startswith(str(FOREIGN_MIB))
    assert line_of(said, "<== OVERLAP").startswith("GPU 1")


@pytest.mark.usefixtures("seen")
def test_whatever_changes_a_host_asks_it_itself(workspace: Workspace) -> None:
    workspace.write_stack("desk", demo("desk", "triton@0"))
    status, said = workspace.berth("up", "desk")
    assert status != 0
    assert "facts of" not in said


@pytest.mark.usefixtures("seen")
def test_old_facts_are_told_as_a_warning(workspace: Workspace) -> None:
    file = workspace.folder / "inventory/sandbox.json"
    before = file.read_text()
    taken = (datetime.now(UTC) - timedelta(days=20)).strftime("%Y-%m-%dT%H:%M:%SZ")
    file.write_text(re.sub(r'("taken_at": )"[^"]*"', rf'\1"{taken}"', before))
    try:
        status, said = previewed(workspace, "desk", demo("desk", "triton@0"))
    finally:
        file.write_text(before)
    assert status == 0, said
    assert line_of(said, "warning: host sandbox: facts of").endswith(
        "20 days old (inventory/sandbox.json)"
    )
    assert "`berth discover sandbox`" in said


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(("instance", "passes"), [("triton@0", True), ("triton@3", False)])
def test_the_documented_job_judges_a_fresh_checkout_without_keys(
    workspace: Workspace, tmp_path: Path, instance: str, passes: bool
) -> None:
    checkout = Workspace(tmp_path, workspace.host)
    shutil.rmtree(checkout.folder / ".berth")
    shutil.copytree(workspace.folder / "inventory", checkout.folder / "inventory")
    shutil.copy(workspace.folder / "Pulumi.base.yaml", checkout.folder)
    checkout.write_stack("desk", demo("desk", instance))
    environment = {
        name: value
        for name, value in checkout.environment.items()
        if not name.startswith(("PULUMI_BACKEND", "PULUMI_CONFIG", "SSH_"))
    }
    done = subprocess.run(
        ["bash", "-eu", "-c", documented_job()],
        cwd=checkout.folder,
        env=environment | {"STACK": "desk"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        check=False,
    )
    said = COLOUR.sub("", done.stdout)
    assert (done.returncode == 0) is passes, said
    assert ("<== OVERLAP" in said) is not passes, said


def documented(pattern: str) -> set[str]:
    """The lines of a block of docs/review.md, as `alike` gives them."""
    (block,) = re.findall(pattern, (ROOT / "docs/review.md").read_text(), re.DOTALL)
    return set(alike(block))


def alike(text: str) -> list[str]:
    """Lines without indentation, times, ages and process ids, which are others each time."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:]+(Z| UTC)", "WHEN", text)
    text = re.sub(r"just taken|\d+ (minute|day)s? old", "AGE", text)
    text = re.sub(r"\(pid \d+\)", "(pid N)", text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def documented_job() -> str:
    """The commands of docs/review.md, from where the checkout has its Python environment."""
    page = (ROOT / "docs/review.md").read_text()
    (job,) = re.findall(r"```sh\n(python3 -m venv.*?)```", page, re.DOTALL)
    made, rest = job.split("-r requirements.lock\n")
    assert ".venv" in made
    return str(rest)
