"""The reference layout, from an empty host through changes and accidents to an empty host.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from tests.e2e.host import TestHost, until
from tests.e2e.workspace import Workspace, reference

STACK = "ref"
FOREIGN = 29
GRAPHS_MIB = 512
ARCHITECT = "reference.gemma-4-31b-it-nvfp4"
AUDITOR = "reference.gemma-4-e4b-it"
SENTRY = "reference.gemma-4-e2b-it"
pytestmark = pytest.mark.usefixtures("up")
PORTS = {"0": 8000, "1": 8001, "2": 8002, "3": 8003, "wide-01": 8010}


def foreign_containers(host: TestHost) -> str:
    """Id, start time and state of every container that is not ours."""
    names = "docker ps -aq --no-trunc --filter label=somebody.else"
    return host.sh(f"docker inspect -f '{{{{.Id}}}} {{{{.State.StartedAt}}}}' $({names}) | sort")


@pytest.fixture(scope="module")
def foreign(host: TestHost) -> Iterator[str]:
    """Containers of somebody else, running before the stack comes up."""
    image = host.description["image"]
    host.sh(
        f"for n in $(seq {FOREIGN}); do docker run -d --label somebody.else=yes --network none"
        f" --name foreign-$n {image} sleep 3600 >/dev/null; done"
    )
    yield foreign_containers(host)
    host.sh("docker rm -f $(docker ps -aq --filter label=somebody.else) >/dev/null")


@pytest.fixture(scope="module")
def up(workspace: Workspace, host: TestHost, foreign: str) -> Iterator[str]:
    del foreign
    workspace.write_stack(STACK, reference(host))
    yield workspace.up(STACK)
    workspace.berth("down", STACK)


def test_up_serves_every_role_and_shows_it(up: str) -> None:
    for role in ("architect", "worker", "auditor", "sentry"):
        assert f"\n{role}: gemma" in up
    for shown in ("triton@wide-01.service", "READY", "NVIDIA L4"):
        assert shown in up


def test_up_again_changes_nothing_and_says_so(workspace: Workspace) -> None:
    assert "nothing to change" in workspace.up(STACK)


def test_the_declared_file_is_left_as_it_was_written(workspace: Workspace) -> None:
    assert "encryptionsalt" not in (workspace.folder / f"Pulumi.{STACK}.yaml").read_text()


def test_plain_pulumi_sees_the_same_stack(workspace: Workspace) -> None:
    status, said = workspace.pulumi("preview", "--stack", STACK, "--expect-no-changes")
    assert status == 0, said


def test_outputs_say_what_is_served_where(workspace: Workspace) -> None:
    outputs = workspace.outputs(STACK)
    assert sorted(outputs) == ["builds", "gateway", "instances", "keys", "models", "roles"]
    assert {i["state"] for i in outputs["instances"].values()} == {"active"}
    assert {m["state"] for m in outputs["models"].values()} == {"READY"}
    assert outputs["roles"]["worker"]["model"] == ARCHITECT
    assert outputs["roles"]["sentry"]["endpoint"].endswith(f":8003/v2/models/{SENTRY}")
    assert len(outputs["roles"]["architect"]["gpus"]) == 2


def test_models_hold_what_they_claimed_of_their_own_gpus(host: TestHost) -> None:
    used, claimed = host.gpu_mib(), host.claimed_mib()
    assert all(used)
    # A model that shares its GPU keeps within its claim; the others' CUDA graphs come on top.
    beyond = [u - c for u, c in zip(used, claimed, strict=True)]
    assert beyond == [pytest.approx(GRAPHS_MIB, abs=2)] * 3 + [0]


def test_an_answer_names_the_model_that_gave_it(workspace: Workspace) -> None:
    status, said = workspace.berth("ask", "sentry", "Who are you?", "--stack", STACK)
    assert status == 0
    assert "gemma-4-e2b-it" in said


def test_the_control_api_is_shut_without_its_key_and_grpc_is_closed(host: TestHost) -> None:
    for port in PORTS.values():
        url = f"http://127.0.0.1:{port}/v2/repository/index"
        assert host.sh(f"curl -s -o /dev/null -w '%{{http_code}}' -X POST {url}") == "403"
    listening = host.sh("ss -Hltn | awk '{print $4}'").splitlines()
    beyond = [address for address in listening if not address.startswith(("127.", "[::1]"))]
    assert {address.rpartition(":")[2] for address in beyond} == {"22", "8443"}
    assert not any(address.endswith(":8001") for address in beyond)


def test_secrets_are_in_no_state_unit_argument_environment_or_journal(
    up: str, host: TestHost, workspace: Workspace
) -> None:
    secrets = host.sh("for key in /etc/berth/instances/*.key; do cat $key; echo; done").split()
    private_key = (host.directory / "id_ed25519").read_text()
    secrets.append(private_key.splitlines()[3])  # Before it stands the public half.
    places = {
        "state": workspace.state(STACK),
        "output": up,
        "arguments": host.sh("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '", ok=False),
        "units": host.sh("systemctl cat 'triton@*'; cat /etc/berth/instances/*.env"),
        "containers": host.sh("docker inspect $(docker ps -aq --filter label=berth.instance)"),
        "journal": host.sh("journalctl --no-pager -o cat"),
    }
    assert len(secrets) >= 6
    for place, text in places.items():
        assert text
        assert not [secret for secret in secrets if secret in text], place
    modes = host.sh("stat -c '%a %U' /etc/berth/instances /etc/berth/instances/0.key")
    assert modes.splitlines() == ["700 root", "400 root"]


def test_changing_one_models_context_reloads_that_one_and_no_other(
    host: TestHost, workspace: Workspace
) -> None:
    before = {name: host.loads(name) for name in PORTS}
    workspace.change_model("gemma-4-e2b-it", max_model_len=4096)
    status, said = workspace.pulumi("preview", "--stack", STACK, "--json")
    assert status == 0, said
    steps = json.loads(said[said.index("{") :])["steps"]
    touched = {step["urn"].rpartition("::")[2]: step["op"] for step in steps}
    changed = {name: op for name, op in touched.items() if op not in ("same", "refresh", "read")}
    assert changed == {f"sandbox/{SENTRY}": "update", f"{SENTRY}/triton@3": "update"}
    workspace.up(STACK)
    after = {name: host.loads(name) for name in PORTS}
    assert after == before | {"3": before["3"] + 1}
    assert workspace.outputs(STACK)["models"]["gemma-4-e2b-it/triton@3"]["max_model_len"] == 4096


def test_a_model_unloaded_by_hand_shows_and_comes_back(
    host: TestHost, workspace: Workspace
) -> None:
    host.control("2", PORTS["2"], f"/v2/repository/models/{AUDITOR}/unload")
    until(lambda: not host.answers(PORTS["2"], AUDITOR), 30, "the unload")
    status, said = workspace.pulumi("preview", "--refresh", "--stack", STACK)
    assert status == 0, said
    assert "1 to create" in said
    workspace.up(STACK)
    assert host.answers(PORTS["2"], AUDITOR)


def test_an_entry_edited_by_hand_shows_and_is_put_right(
    host: TestHost, workspace: Workspace
) -> None:
    file = f"/data/triton/models/{AUDITOR}/config.pbtxt"
    before = host.sh(f"cat {file}")
    host.sh(f"sed -i 's/KIND_MODEL/KIND_GPU/' {file}")
    status, said = workspace.pulumi("preview", "--refresh", "--stack", STACK)
    assert status == 0, said
    assert f"sandbox/{AUDITOR}" in said
    assert "update" in said
    workspace.up(STACK)
    assert host.sh(f"cat {file}") == before
    assert host.answers(PORTS["2"], AUDITOR)


def test_a_unit_stopped_by_hand_shows_and_comes_back_with_its_model(
    host: TestHost, workspace: Workspace
) -> None:
    host.sh("systemctl disable --now triton@2")
    status, said = workspace.pulumi("preview", "--refresh", "--stack", STACK)
    assert status == 0, said
    assert "RunningUnit triton@2.service create" in said
    workspace.up(STACK)
    assert host.sh("systemctl is-enabled triton@2") == "enabled"
    assert host.answers(PORTS["2"], AUDITOR)


def test_a_killed_server_takes_down_only_itself_and_up_brings_its_model_back(
    host: TestHost, workspace: Workspace
) -> None:
    failed: list[str] = []
    stop = threading.Event()

    def keep_asking(port: int, model: str) -> None:
        while not stop.is_set():
            if not host.answers(port, model):
                failed.append(model)

    others = [(PORTS["wide-01"], ARCHITECT), (PORTS["2"], AUDITOR)]
    askers = [threading.Thread(target=keep_asking, args=other) for other in others]
    for asker in askers:
        asker.start()
    try:
        units = [f"triton@{name}" for name in ("0", "1", "2", "wide-01")]
        started = f"systemctl show -p ActiveEnterTimestampMonotonic {' '.join(units)}"
        before = host.sh(started)
        host.sh("pkill -9 -f 'tritonserver .*shm-region-prefix-name=triton-3'")
        until(lambda: not host.answers(PORTS["3"], SENTRY), 10, "the kill")
        health = f"curl -sf -m 2 http://127.0.0.1:{PORTS['3']}/v2/health/live && echo up"
        until(lambda: "up" in host.sh(health, ok=False), 60, "the unit's restart")
        workspace.up(STACK)
        assert host.sh(started) == before
    finally:
        stop.set()
        for asker in askers:
            asker.join()
    assert not failed
    assert host.answers(PORTS["3"], SENTRY)


def test_another_stacks_small_model_stands_beside_sentry(
    host: TestHost, workspace: Workspace
) -> None:
    role = {"model": "llama-3.2-1b-instruct", "instance": "triton@3"}
    demo = {"name": "frontdesk", "roles": {"greeter": role}}
    workspace.write_stack("desk", {"host_stack": STACK, "demo": demo})
    alone = host.gpu_mib()[3]
    assert "\ngreeter: llama-3.2-1b-instruct here" in workspace.up("desk")
    assert alone < host.gpu_mib()[3] < 23034
    assert host.answers(PORTS["3"], SENTRY)
    status, said = workspace.berth("down", STACK)
    assert status != 0
    assert "frontdesk.llama-3.2-1b-instruct (berth/desk/frontdesk)" in said
    assert host.answers(PORTS["2"], AUDITOR)
    workspace.down("desk")
    assert abs(host.gpu_mib()[3] - alone) < 10
    workspace.up(STACK)


def test_a_removed_role_frees_its_gpu_and_nothing_else(
    host: TestHost, workspace: Workspace
) -> None:
    sections = reference(host)
    del sections["demo"]["roles"]["auditor"]
    workspace.write_stack(STACK, sections)
    workspace.up(STACK)
    used = host.gpu_mib()
    assert used[2] == 0
    assert all(used[gpu] for gpu in (0, 1, 3))
    assert [bool(mib) for mib in host.claimed_mib()] == [bool(mib) for mib in used]
    assert host.sh(f"ls /data/triton/models | grep {AUDITOR} || true") == ""


def test_an_instance_is_renamed_on_its_port_and_no_model_notices(
    host: TestHost, workspace: Workspace
) -> None:
    sections = reference(host)
    workspace.write_stack(STACK, sections)
    workspace.up(STACK)
    loads = {name: host.loads(name) for name in ("2", "3", "wide-01")}
    sections["instances"]["triton@spare"] = sections["instances"].pop("triton@0")
    workspace.write_stack(STACK, sections)
    workspace.up(STACK)
    assert workspace.outputs(STACK)["instances"]["triton@spare"]["state"] == "active"
    assert host.sh("ls /etc/berth/instances").split().count("0.env") == 0
    assert {name: host.loads(name) for name in loads} == loads


def test_down_leaves_nothing_of_ours_and_all_that_is_not(
    host: TestHost, workspace: Workspace, foreign: str
) -> None:
    workspace.down(STACK)
    assert host.gpu_mib() == [0, 0, 0, 0]
    assert host.ours() == dict.fromkeys(host.ours(), "")
    assert "gemma-4-e2b-it" in host.sh("ls /data/triton/weights")
    assert foreign_containers(host) == foreign
    assert len(foreign.splitlines()) == FOREIGN
