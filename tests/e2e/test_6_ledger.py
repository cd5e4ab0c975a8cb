"""A host knows what it is and who holds its GPUs, and keeps others from starting on them.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from components.renderers import berth_host
from models.inventory import Inventory
from tests.e2e.host import TestHost, until
from tests.e2e.workspace import Workspace, only, reference

STACK = "ledger"
MODEL = "reference.gemma-4-e2b-it"
ANNA = "anna: notebook"
ASKED = json.dumps({"user": "berth", "data_dir": "/data/triton"})
pytestmark = pytest.mark.usefixtures("up")


@pytest.fixture(scope="module")
def up(workspace: Workspace, host: TestHost) -> Iterator[None]:
    sections = only(reference(host), "triton@0", "triton@2", guard=("gemma-4-e2b-it", "triton@0"))
    workspace.write_stack(STACK, sections)
    workspace.up(STACK)
    yield
    for name in claims(host):
        host.sh(f"berth-host release --name '{name}' || true")
    workspace.berth("down", STACK)


def inventory(host: TestHost) -> Inventory:
    said = host.sh(f"berth-host inventory <<'END'\n{ASKED}\nEND")
    return Inventory.model_validate_json(said)


def claims(host: TestHost) -> list[str]:
    said = host.sh("[ ! -x /usr/local/bin/berth-host ] || berth-host claims")
    return [claim["name"] for claim in json.loads(said or '{"claims": []}')["claims"]]


def started(host: TestHost, instance: str) -> bool:
    """Try to start it anew by hand; whether systemctl says that it runs."""
    script = f"systemctl reset-failed {instance}; systemctl restart {instance} && echo started"
    return host.sh(script, ok=False) == "started"


def test_up_again_changes_nothing(workspace: Workspace) -> None:
    assert "nothing to change" in workspace.up(STACK)


def test_the_inventory_holds_all_that_there_is(host: TestHost) -> None:
    found = inventory(host)
    assert found.berth_host == berth_host.version()
    assert found.systemd
    assert [gpu.index for gpu in found.gpus.found] == [0, 1, 2, 3]
    assert found.driver
    assert found.docker.version
    assert found.docker.nvidia_runtime
    ports = {c.instance: [port.port for port in c.ports] for c in found.docker.containers}
    assert ports["triton@0"] == [8000, 8100]
    assert {container.state for container in found.docker.containers} == {"running"}
    assert found.units == {"triton@0.service": "active", "triton@2.service": "active"}
    assert {8000, 8002} <= set(found.ports)
    assert found.weights["gemma-4-e2b-it"].total > 0
    assert not found.weights["gemma-4-e2b-it"].trouble
    (claim,) = found.claims
    assert (claim.owner, claim.instance, claim.roles) == (
        f"berth/{STACK}/reference",
        "triton@0",
        ("guard",),
    )
    assert claim.gpus[0].uuid == found.gpus.found[0].uuid


def test_our_engines_are_told_from_a_strangers_process(host: TestHost) -> None:
    host.sh("setsid simgpu-hold --gpu 3 --mib 3000 >/tmp/hold 2>&1 & echo $! >/tmp/hold.pid")
    until(lambda: host.gpu_mib()[3] >= 3000, 20, "the stranger's memory")
    try:
        processes = inventory(host).processes
    finally:
        host.sh("kill $(cat /tmp/hold.pid)")
    uuids = [gpu.uuid for gpu in inventory(host).gpus.found]
    ours = [process for process in processes if process.gpu == uuids[0]]
    assert ours
    assert {process.instance for process in ours} == {"triton@0"}
    (stranger,) = [process for process in processes if process.gpu == uuids[3]]
    assert (stranger.instance, stranger.mib >= 3000) == ("", True)
    assert "simgpu-hold" in stranger.name or "python" in stranger.name


def test_a_claimed_gpu_cannot_be_held_by_hand(host: TestHost) -> None:
    said = host.sh(f"berth-host hold --gpu 0 --owner '{ANNA}' 2>&1", ok=False)
    assert f"berth/{STACK}/reference: guard (gemma-4-e2b-it on triton@0) since 20" in said


def test_a_unit_whose_gpu_somebody_holds_does_not_start_and_the_journal_says_why(
    host: TestHost,
) -> None:
    name = host.sh(f"berth-host hold --gpu 2 --mib 8000 --owner '{ANNA}'")
    assert not started(host, "triton@2")
    journal = host.sh("journalctl -u triton@2 -n 30 -o cat")
    assert f"is claimed by {ANNA} since 20" in journal
    assert "triton@2 is not started" in journal
    assert f"berth-host release --name '{name}'" in journal
    # A model's own unit does not mind what is held elsewhere.
    assert host.answers(8000, MODEL)


def test_a_power_cut_loses_no_claim(host: TestHost) -> None:
    before = claims(host)
    assert len(before) == 2
    host.sandbox("power-cut", "--name", host.name)
    assert claims(host) == before
    until(lambda: inventory(host).units.get("triton@0.service") == "active", 120, "triton@0")
    assert inventory(host).units["triton@2.service"] != "active"


def test_up_is_refused_in_the_gates_words_while_it_is_held(
    workspace: Workspace, host: TestHost
) -> None:
    until(lambda: inventory(host).units["triton@2.service"] == "failed", 90, "the last try")
    status, said = workspace.berth("up", STACK)
    assert status != 0
    assert ANNA in said
    assert "Traceback" not in said


def test_a_host_that_a_person_holds_is_not_taken_down(workspace: Workspace, host: TestHost) -> None:
    status, said = workspace.berth("down", STACK)
    assert status != 0
    assert f"claim of {ANNA}" in said
    assert "Traceback" not in said
    assert host.sh("systemctl is-active triton@0") == "active"


def test_once_it_is_released_the_unit_starts(workspace: Workspace, host: TestHost) -> None:
    host.sh("berth-host release --name held/2-1")
    assert started(host, "triton@2")
    workspace.up(STACK)
    assert host.answers(8000, MODEL)
    assert "nothing to change" in workspace.up(STACK)


def test_berth_host_changed_by_hand_is_told_by_the_inventory(host: TestHost) -> None:
    host.sh("cp /usr/local/bin/berth-host /tmp/b; printf x >> /usr/local/bin/berth-host")
    try:
        assert inventory(host).berth_host not in ("", berth_host.version())
    finally:
        host.sh("cp /tmp/b /usr/local/bin/berth-host")


def test_down_leaves_neither_program_nor_ledger_and_preview_brings_none(
    workspace: Workspace, host: TestHost
) -> None:
    workspace.down(STACK)
    assert host.ours() == dict.fromkeys(host.ours(), "")
    assert workspace.berth("preview", STACK)[0] == 0
    assert host.sh("ls -d /usr/local/bin/berth-host /var/lib/berth 2>/dev/null || true") == ""
