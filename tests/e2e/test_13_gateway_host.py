"""A host's gateway and adapter are its stack's, as its instances are.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.clients import Reached
from tests.e2e.host import TestHost, until
from tests.e2e.workspace import Workspace, only, reference

STACK = "gateway"
SENTRY = "gemma-4-e2b-it"
UNITS = ("berth-gateway.service", "berth-adapter.service")
ADAPTER = "http://127.0.0.1:8300"


def sections(host: TestHost, **gateway: Any) -> dict[str, Any]:
    """One keyed instance with a model for the adapter to reach, and a gateway."""
    whole = reference(host)
    declared = whole["hosts"]["sandbox"]["gateway"]
    made = only(whole, "triton@3", sentry=(SENTRY, "triton@3"))
    made["instances"]["triton@3"]["keyed_apis"] = "all"
    made["hosts"]["sandbox"]["gateway"] = declared | gateway
    return made


@pytest.fixture(scope="module")
def gateway(workspace: Workspace, host: TestHost) -> Iterator[dict[str, Any]]:
    """What the stack's outputs say of it."""
    workspace.write_stack(STACK, sections(host))
    workspace.up(STACK)
    yield workspace.outputs(STACK)["gateway"]["sandbox"]
    if workspace.pulumi("stack", "export", "--stack", STACK)[0] == 0:
        workspace.down(STACK)


def main_pid(host: TestHost, unit: str) -> str:
    return host.sh(f"systemctl show --property MainPID --value {unit}")


def health(host: TestHost) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(host.sh(f"curl -s -m 10 {ADAPTER}/health"))
    return said


def test_clients_reach_it_by_the_url_and_the_certificate_that_the_outputs_give(
    gateway: dict[str, Any], host: TestHost
) -> None:
    trusted = ssl.create_default_context(cadata=gateway["certificate"])
    with httpx.Client(verify=trusted, trust_env=False) as client:
        answer = client.get(f"{gateway['url']}/v1/models")
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    journal = "journalctl -t berth_gateway -o cat | grep 'v1/models' | tail -1"
    until(lambda: "401" in host.sh(f"{journal} || true"), 10, "its access log in the journal")


def test_the_adapter_answers_on_loopback_alone_and_may_do_little(
    gateway: dict[str, Any], host: TestHost
) -> None:
    assert gateway["adapter"]["endpoint"] == ADAPTER
    assert health(host)["status"] == "ok"
    assert host.sh("ss -Hltn 'sport = :8300' | awk '{print $4}'") == "127.0.0.1:8300"
    (about,) = json.loads(host.sh("docker inspect $(docker ps -q -f label=berth.service)"))
    assert about["Config"]["User"] == "65530:65530"
    assert about["HostConfig"]["ReadonlyRootfs"] is True
    assert about["HostConfig"]["CapDrop"] == ["ALL"]
    assert all(not mount["RW"] for mount in about["Mounts"])
    assert about["Config"]["Labels"]["berth.version"]


def test_a_second_up_changes_nothing_and_status_has_a_line_for_each(
    gateway: dict[str, Any], workspace: Workspace
) -> None:
    assert "nothing to change" in workspace.up(STACK)
    status, said = workspace.berth("status", STACK)
    assert status == 0, said
    for unit in UNITS:
        (line,) = [line for line in said.splitlines() if unit in line]
        assert "active" in line
    assert gateway["url"] in said


@pytest.mark.usefixtures("gateway")
def test_a_role_in_a_keyed_triton_is_reached_and_its_key_is_only_the_adapters(
    workspace: Workspace, host: TestHost
) -> None:
    assert health(host)["roles"] == ["reference/sentry"]
    with Reached.of(workspace, STACK).http() as http:
        asked = {"model": "sentry", "messages": [{"role": "user", "content": "x"}], "max_tokens": 8}
        said = http.post("/v1/chat/completions", json=asked)
    assert said.json()["choices"][0]["message"]["content"], said.text
    key = "/etc/berth/adapter/secrets.d/reference.json"
    assert host.sh(f"cat {key}") != "{}"
    assert host.sh(f"runuser -u berth -- cat {key} || echo no") == "no"


@pytest.mark.usefixtures("gateway")
def test_a_stream_through_both_outlives_a_reload(workspace: Workspace, host: TestHost) -> None:
    with Reached.of(workspace, STACK).openai() as client:
        said = [{"role": "user", "content": "Tell me about harbours"}]
        # An answer of a hundred tokens, one each 10 ms.
        asked: Any = {"model": "sentry", "messages": said, "max_tokens": 200, "seed": 2}
        whole = client.chat.completions.create(**asked)
        workers = f"pgrep -P {main_pid(host, UNITS[0])}"
        before = host.sh(workers).split()
        with client.chat.completions.create(**asked, stream=True) as stream:
            chunks = iter(stream)
            first = [next(chunks) for _ in range(3)]
            host.sh(f"systemctl reload {UNITS[0]}")
            all_of_it = [*first, *chunks]
        until(lambda: not {*before} & {*host.sh(workers).split()}, 20, "other workers")
    assert {chunk.model for chunk in all_of_it} == {whole.model} == {"sentry"}
    text = "".join(chunk.choices[0].delta.content or "" for chunk in all_of_it)
    assert text == whole.choices[0].message.content
    assert all_of_it[-1].choices[0].finish_reason == "stop"


@pytest.mark.usefixtures("gateway")
def test_a_demos_broken_file_shows_in_status_and_changes_nothing_else(
    workspace: Workspace, host: TestHost
) -> None:
    folder = "/etc/berth/adapter/routes.d"
    host.sh(f"echo '{{' > {folder}/x.new; mv {folder}/x.new {folder}/broken.json")
    assert health(host)["roles"] == ["reference/sentry"]
    status, said = workspace.berth("status", STACK)
    assert status != 0
    assert "broken stays as it was" in said
    host.sh(f"rm {folder}/broken.json")
    assert "routes_refused" not in health(host)


@pytest.mark.usefixtures("gateway")
def test_another_limit_is_a_reload_and_no_restart(workspace: Workspace, host: TestHost) -> None:
    before = [main_pid(host, unit) for unit in UNITS]
    workspace.write_stack(STACK, sections(host, timeout_s=321, max_body_mib=7))
    workspace.up(STACK)
    assert "worker_shutdown_timeout 321s" in host.sh("cat /etc/berth/gateway/nginx.conf")
    assert '"max_body_mib": 7' in host.sh("cat /etc/berth/adapter/adapter.json")
    assert [main_pid(host, unit) for unit in UNITS] == before


@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize("unit", UNITS)
def test_one_that_was_stopped_by_hand_shows_and_comes_back(
    workspace: Workspace, host: TestHost, unit: str
) -> None:
    host.sh(f"systemctl stop {unit}")
    status, said = workspace.pulumi("preview", "--stack", STACK, "--expect-no-changes")
    assert status != 0, said
    workspace.up(STACK)
    assert host.sh(f"systemctl is-active {unit}") == "active"
    assert "nothing to change" in workspace.up(STACK)
    until(lambda: health(host)["roles"] == ["reference/sentry"], 20, "the routes it had")


@pytest.mark.usefixtures("gateway")
def test_another_image_under_the_same_name_is_another_container(
    workspace: Workspace, host: TestHost
) -> None:
    image = "berth-sandbox/adapter:0.1.0"
    host.sh(f"printf 'FROM {image}\\nLABEL changed=yes\\n' | docker build -q -t {image} -")
    workspace.up(STACK)
    made = "docker inspect -f '{{.Config.Labels.changed}}' $(docker ps -q -f label=berth.service)"
    assert host.sh(made) == "yes"
    assert len(host.sh("docker ps -aq -f label=berth.service").splitlines()) == 1
    assert health(host)["roles"] == ["reference/sentry"]


@pytest.mark.usefixtures("gateway")
def test_after_a_power_cut_both_serve_again_without_an_operator(host: TestHost) -> None:
    host.sandbox("power-cut", "--name", host.name)
    states = f"systemctl is-active {' '.join(UNITS)} || true"
    until(lambda: host.sh(states).split() == ["active", "active"], 60, "the units")
    until(lambda: '"ok"' in host.sh(f"curl -s -m 5 {ADAPTER}/health || true"), 60, "the adapter")


@pytest.mark.usefixtures("gateway")
def test_it_stays_while_a_demo_has_routes_and_then_nothing_of_it_is_left(
    workspace: Workspace, host: TestHost
) -> None:
    for name in ("gateway", "adapter"):
        host.sh(f"echo '{{}}' > /etc/berth/{name}/routes.d/desk.json")
    status, said = workspace.berth("down", STACK)
    assert status != 0
    assert "/etc/berth/gateway/routes.d still holds: desk.json" in said
    assert [host.sh(f"systemctl is-active {unit}") for unit in UNITS] == ["active", "active"]
    host.sh("rm /etc/berth/gateway/routes.d/desk.json")
    status, said = workspace.berth("down", STACK)
    assert status != 0
    assert "/etc/berth/adapter/routes.d still holds: desk.json" in said
    assert host.sh(f"systemctl is-active {UNITS[1]}") == "active"
    host.sh("rm /etc/berth/adapter/routes.d/desk.json")
    workspace.down(STACK)
    assert host.sh("ls /etc/systemd/system | grep berth || true") == ""
    assert host.sh("getent passwd berth-gateway berth-adapter || true") == ""
    assert host.sh("getent group berth-gateway berth-adapter || true") == ""
    assert host.sh("ls -d /etc/berth /run/berth-gateway 2>/dev/null || true") == ""
    assert host.sh("docker ps -aq -f label=berth.service") == ""
    assert host.sh("ss -Hltn 'sport = :8443 or sport = :8300'") == ""
