"""Operators at the same moment, moves, kills and hands: the claims and the models stay one.

The tests of this file share a host that one stack has set up; each leaves it as it found it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.host import TestHost, until
from tests.e2e.workspace import COLOUR, Workspace, only, reference

RACES = int(os.environ.get("BERTH_RACES", "5"))
"""How many races are run. Each takes some 15 s on two cores; all fifty: BERTH_RACES=50."""
BASE = "base"
PORTS = {"triton@0": 8000, "triton@1": 8001}
pytestmark = pytest.mark.usefixtures("base")


def demo(name: str, **models: str) -> dict[str, Any]:
    """A demo on the base's host: instance's number → model."""
    roles = {
        f"{name}-{model}": {"model": model, "instance": f"triton@{number.removeprefix('on')}"}
        for number, model in models.items()
    }
    return {"host_stack": BASE, "demo": {"name": name, "roles": roles}}


def prepared(workspace: Workspace, host: TestHost) -> Workspace:
    """A checkout that knows the host and two small models, which stand beside nobody."""
    workspace.write_stack(BASE, only(reference(host), "triton@0", "triton@1"))
    for name in ("one", "two"):
        workspace.write_model(name, weights="llama-3.2-1b-instruct", max_model_len=4096)
    return workspace


@pytest.fixture(scope="module")
def base(workspace: Workspace, host: TestHost) -> Iterator[None]:
    prepared(workspace, host).up(BASE)
    yield
    workspace.down(BASE)
    assert host.ours() == dict.fromkeys(host.ours(), "")


@pytest.fixture
def left(workspace: Workspace, host: TestHost) -> Iterator[str]:
    """A demo's stack that is up, with `one` on the first GPU."""
    workspace.write_stack("left", demo("left", on0="one"))
    workspace.up("left")
    yield "left"
    workspace.down("left")
    assert clean(host)


def claims(host: TestHost) -> dict[str, dict[str, Any]]:
    """Claim's name → record."""
    listed = json.loads(host.sh("berth-host claims"))["claims"]
    return {record["name"]: record for record in listed}


def loaded(host: TestHost) -> list[str]:
    """`model on instance` for everything that a server holds or is about to hold."""
    found = []
    for instance, port in PORTS.items():
        said = host.control(instance.partition("@")[2], port, "/v2/repository/index")
        busy = [row for row in json.loads(said) if row.get("state", "") not in ("", "UNAVAILABLE")]
        found += [f"{row['name']} on {instance}" for row in busy]
    return sorted(found)


def entries(host: TestHost) -> list[str]:
    return host.sh("ls /data/triton/models").split()


def clean(host: TestHost) -> bool:
    """Whether no demo has left anything on the host."""
    return not (claims(host) or loaded(host) or entries(host) or any(host.gpu_mib()))


class Operator:
    """Somebody with a checkout and a demo of their own."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.name = name
        self.owner = f"berth/{name}/{name}"
        self.workspace = workspace
        workspace.write_stack(name, demo(name, on0="one"))
        status, said = workspace.berth("preview", name)
        assert status == 0, said
        self.status, self.said = 0, ""

    def up(self, together: threading.Barrier) -> None:
        """A real `pulumi up` that was previewed before."""
        together.wait()
        words = ("up", "--yes", "--skip-preview", "--stack", self.name)
        self.status, said = self.workspace.pulumi(*words)
        self.said = COLOUR.sub("", said)

    def destroy(self) -> None:
        status, said = self.workspace.pulumi("destroy", "--yes", "--skip-preview", "-s", self.name)
        assert status == 0, said


@pytest.fixture(scope="module")
def operators(
    base: None, host: TestHost, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Operator, Operator]:
    del base
    one, other = (
        prepared(Workspace(tmp_path_factory.mktemp(name), host), host) for name in ("ann", "bob")
    )
    return Operator(one, "ann"), Operator(other, "bob")


@pytest.mark.timeout(60 + 40 * RACES)
def test_of_two_operators_at_the_same_moment_exactly_one_wins(
    operators: tuple[Operator, Operator], host: TestHost
) -> None:
    at_the_ledger = 0
    for number in range(RACES):
        together = threading.Barrier(2)
        runs = [threading.Thread(target=each.up, args=(together,)) for each in operators]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        told = "\n".join(each.said for each in operators)
        assert sorted(each.status == 0 for each in operators) == [False, True], told
        loser, winner = sorted(operators, key=lambda each: each.status == 0)
        assert winner.owner in loser.said, loser.said
        assert "Traceback" not in loser.said
        at_the_ledger += "berth:Claims" in loser.said[loser.said.index("Diagnostics:") :]
        assert [record["owner"] for record in claims(host).values()] == [winner.owner]
        assert loaded(host) == [f"{winner.name}.one on triton@0"]
        assert entries(host) == [f"{winner.name}.one"]
        assert host.answers(8000, f"{winner.name}.one")
        winner.destroy()
        assert clean(host)
        print(f"race {number}: {winner.name} won")
    print(f"{at_the_ledger} of {RACES} races met at the ledger")
    assert at_the_ledger


def test_two_models_change_places_in_one_up(workspace: Workspace, host: TestHost) -> None:
    workspace.write_stack("swap", demo("swap", on0="one", on1="two"))
    workspace.up("swap")
    try:
        workspace.write_stack("swap", demo("swap", on0="two", on1="one"))
        workspace.up("swap")
        assert loaded(host) == ["swap.one on triton@1", "swap.two on triton@0"]
        assert host.answers(8000, "swap.two")
        assert host.answers(8001, "swap.one")
        swapped = ["berth/swap/swap.one/triton@1", "berth/swap/swap.two/triton@0"]
        assert sorted(claims(host)) == swapped
        assert "nothing to change" in workspace.up("swap")
    finally:
        workspace.down("swap")
    assert clean(host)


def test_a_model_that_moves_to_a_free_gpu_leaves_nothing_behind(
    workspace: Workspace, host: TestHost, left: str
) -> None:
    workspace.write_stack(left, demo(left, on1="one"))
    workspace.up(left)
    assert loaded(host) == ["left.one on triton@1"]
    assert sorted(claims(host)) == ["berth/left/left.one/triton@1"]
    assert host.gpu_mib()[0] == 0


def test_a_demo_under_another_name_keeps_its_gpus(
    workspace: Workspace, host: TestHost, left: str
) -> None:
    workspace.write_stack(left, demo("renamed", on0="one"))
    workspace.up(left)
    assert loaded(host) == ["renamed.one on triton@0"]
    assert entries(host) == ["renamed.one"]
    assert sorted(claims(host)) == ["berth/left/renamed.one/triton@0"]


def test_a_move_that_is_refused_leaves_the_demo_serving_where_it_was(
    workspace: Workspace, host: TestHost, left: str
) -> None:
    workspace.write_stack("right", demo("right", on1="two"))
    workspace.up("right")
    try:
        before = claims(host)
        workspace.write_stack(left, demo(left, on1="one"))
        words = ("up", "--yes", "--skip-preview", "--continue-on-error", "--stack", left)
        status, said = workspace.pulumi(*words)
        assert status != 0
        assert "berth/right/right" in said
        assert claims(host) == before
        assert host.answers(8000, "left.one")
        workspace.write_stack(left, demo(left, on0="one"))
        assert "nothing to change" in workspace.up(left)
    finally:
        workspace.down("right")


@pytest.mark.parametrize("then", ["up", "down"])
def test_a_run_killed_between_claim_and_load_is_healed_by_the_next(
    workspace: Workspace, host: TestHost, then: str
) -> None:
    workspace.write_stack("cut", demo("cut", on0="one"))
    run = workspace.start("up", "cut")
    until(lambda: bool(claims(host)), 120, "the claim")
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    assert sorted(claims(host)) == ["berth/cut/cut.one/triton@0"]
    if then == "up":
        workspace.up("cut")
        assert host.answers(8000, "cut.one")
        assert sorted(claims(host)) == ["berth/cut/cut.one/triton@0"]
        assert "nothing to change" in workspace.up("cut")
    workspace.down("cut")
    until(lambda: clean(host), 60, "what the killed run had asked for")


def test_a_claim_released_by_hand_is_claimed_again_and_its_model_serves_on(
    workspace: Workspace, host: TestHost, left: str
) -> None:
    loads = host.loads("0")
    (name,) = claims(host)
    host.sh(f"berth-host release --name {name}")
    status, said = workspace.pulumi("preview", "--stack", left)
    assert status == 0, said
    assert "berth:Claims" in said
    workspace.up(left)
    assert sorted(claims(host)) == [name]
    assert host.loads("0") == loads


def test_the_claim_of_a_stack_that_is_gone_is_seen_and_released_by_its_name(
    workspace: Workspace, host: TestHost
) -> None:
    workspace.write_stack("lost", demo("lost", on1="two"))
    workspace.up("lost")
    workspace.berth("forget", "lost")
    (workspace.folder / "Pulumi.lost.yaml").unlink()
    name = "berth/lost/lost.two/triton@1"
    status, said = workspace.berth("claims", "--stack", BASE)
    assert status == 0, said
    assert name in said
    assert "no such stack here" in said
    status, said = workspace.berth("release", name, "--stack", BASE)
    assert status != 0
    assert "--unload" in said
    assert sorted(claims(host)) == [name]
    status, said = workspace.berth("release", name, "--stack", BASE, "--unload")
    assert status == 0, said
    assert "berth/lost/lost" in said
    assert not claims(host)
    assert not loaded(host)
    assert host.gpu_mib()[1] == 0
    host.sh("rm -r /data/triton/models/lost.two")  # its stack's entry, which nobody else removes
