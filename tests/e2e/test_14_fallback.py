"""A model that does not serve on its day one leaves its role to its declared fallback.

The tests of this file are one story and build on each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.clients import Reached
from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace, reference

STACK = "dayone"
NEW, AILING, FALLBACK = "gemma-4-31b-it", "gemma-4-31b-ailing", "gemma-4-26b-a4b-it"
WEIGHTS = "/data/triton/weights"
INSTANCE, UNIT = "triton@wide-01", "reference-architect.service"
LINE = f"architect: fallback {FALLBACK} serves instead of {NEW}: "


def sections(
    host: TestHost, fallback: str | None = FALLBACK, engine: str | None = None
) -> dict[str, Any]:
    """Architect on all four GPUs, beside nobody."""
    whole = reference(host)
    instance = whole["instances"][INSTANCE]
    gpus = [gpu["uuid"] for gpu in whole["hosts"]["sandbox"]["gpus"]]
    role: dict[str, Any] = {"model": NEW, "instance": INSTANCE}
    role |= {"fallback": {"model": fallback}} if fallback else {}
    role |= {"engine": engine} if engine else {}
    demo = {"name": "reference", "roles": {"architect": role}}
    return whole | {"instances": {INSTANCE: instance | {"gpus": gpus}}, "demo": demo}


@pytest.fixture(scope="module")
def ailing(workspace: Workspace, host: TestHost) -> Iterator[None]:
    """Weights like those of the new model, which bring an engine down with its first request."""
    config = f"{WEIGHTS}/{AILING}/config.json"
    ail = "import json, sys; c = json.load(open(sys.argv[1])); c['sandbox_ailment'] = sys.argv[3]; "
    ail += "json.dump(c, open(sys.argv[2], 'w'))"
    host.sh(
        f"cp -rl {WEIGHTS}/{NEW} {WEIGHTS}/{AILING}; rm {config};"
        f' python3 -c "{ail}" {WEIGHTS}/{NEW}/config.json {config} crashes'
    )
    workspace.change_model(NEW, weights=AILING)
    workspace.write_stack(STACK, sections(host))
    yield
    workspace.down(STACK)
    host.sh(f"rm -r {WEIGHTS}/{AILING}")


def role_of(workspace: Workspace) -> dict[str, Any]:
    found: dict[str, Any] = workspace.outputs(STACK)["roles"]["architect"]
    return found


def chat(http: httpx.Client, model: str = "architect", *, stream: bool = False) -> httpx.Response:
    """A client's question."""
    said = [{"role": "user", "content": "Who are you?"}]
    body = {"model": model, "messages": said, "max_tokens": 12, "stream": stream}
    return http.post("/v1/chat/completions", json=body)


def answered_by_its_own(workspace: Workspace) -> None:
    """The role's own model answers its clients, who see nothing of a fallback."""
    with Reached.of(workspace, STACK).http() as http:
        said = chat(http)
        assert said.status_code == 200, said.text
        assert "x-berth-fallback" not in said.headers
        assert said.json()["model"] == "architect"
        about = http.get("/v1/models").json()["data"][0]["berth"]
    assert (about["model"], about["fallback"], about["serving"]) == (NEW, None, True)


def holders(host: TestHost) -> list[str]:
    """Entries that the server holds."""
    key = host.sh("cat /etc/berth/instances/wide-01.key")
    said = host.sh(
        f"curl -s -m 10 -X POST -H 'X-Berth-Control: {key}' "
        "http://127.0.0.1:8010/v2/repository/index -d '{\"ready\": true}'"
    )
    return [row["name"] for row in json.loads(said)]


@pytest.mark.usefixtures("ailing")
def test_its_fallback_serves_and_the_end_of_up_says_so(
    workspace: Workspace, host: TestHost
) -> None:
    said = workspace.up(STACK)
    last = said.strip().splitlines()[-1]
    assert last.startswith(LINE), said
    assert "EngineCore encountered an issue" in last
    assert "warning: " + LINE in said
    assert holders(host) == [f"reference.{FALLBACK}"]
    claims = json.loads(host.sh("berth-host claims"))["claims"]
    assert {record["model"] for record in claims} == {NEW, FALLBACK}


@pytest.mark.usefixtures("ailing")
def test_everyone_who_looks_can_see_it(workspace: Workspace) -> None:
    role = role_of(workspace)
    assert (role["serving"], role["fallback"], role["state"]) == (FALLBACK, FALLBACK, "FAILED")
    assert "EngineCore encountered an issue" in role["reason"]
    status, said = workspace.berth("status", STACK)
    assert status == 0, said
    assert LINE in said
    assert "EngineCore encountered an issue" in said[said.index(LINE) :]
    status, said = workspace.berth("ask", "architect", "Who are you?", "--stack", STACK)
    assert status == 0, said
    assert FALLBACK in said


@pytest.mark.usefixtures("ailing")
def test_a_client_is_answered_under_the_roles_name_and_told_by_what(workspace: Workspace) -> None:
    with Reached.of(workspace, STACK).http() as http:
        said = chat(http)
        assert said.status_code == 200, said.text
        assert said.headers["x-berth-fallback"] == FALLBACK
        assert said.json()["model"] == "architect"
        assert said.json()["choices"][0]["message"]["content"].startswith(f"{FALLBACK} here")
        streamed = chat(http, stream=True)
        assert streamed.headers["x-berth-fallback"] == FALLBACK
        chunks = [line[6:] for line in streamed.text.splitlines() if line.startswith("data: {")]
        assert {json.loads(chunk)["model"] for chunk in chunks} == {"architect"}
        assert streamed.text.rstrip().endswith("data: [DONE]")
        # Either model's name means the role: who asks for the new one gets what serves.
        assert chat(http, NEW).headers["x-berth-fallback"] == FALLBACK
        listed = http.get("/v1/models").json()["data"]
    assert [each["id"] for each in listed] == ["architect"]
    about = listed[0]["berth"]
    assert (about["model"], about["fallback"], about["serving"]) == (NEW, FALLBACK, True)


@pytest.mark.usefixtures("ailing")
def test_nothing_interrupts_the_fallback_while_nothing_has_changed(
    workspace: Workspace, host: TestHost
) -> None:
    loads = host.loads("wide-01")
    assert "nothing to change" in workspace.up(STACK)
    assert host.loads("wide-01") == loads


@pytest.mark.usefixtures("ailing")
def test_asked_to_it_tries_again_and_falls_back_again(workspace: Workspace) -> None:
    status, said = workspace.berth("retry", "architect", "--stack", STACK)
    assert status == 0, said
    assert said.strip().splitlines()[-1].startswith(LINE), said
    assert role_of(workspace)["serving"] == FALLBACK


@pytest.mark.usefixtures("ailing")
def test_under_an_engine_of_its_own_it_falls_back_to_triton_alike(
    workspace: Workspace, host: TestHost
) -> None:
    workspace.write_stack(STACK, sections(host, engine="vllm"))
    said = workspace.up(STACK)
    assert said.strip().splitlines()[-1].startswith(LINE), said
    assert host.sh(f"systemctl is-active {UNIT} || true") in ("inactive", "failed")
    assert holders(host) == [f"reference.{FALLBACK}"]
    assert role_of(workspace)["engine"] == "vllm"
    with Reached.of(workspace, STACK).http() as http:
        assert chat(http).headers["x-berth-fallback"] == FALLBACK


@pytest.mark.usefixtures("ailing")
def test_one_changed_line_brings_it_back(workspace: Workspace, host: TestHost) -> None:
    workspace.restore_model(NEW)
    said = workspace.up(STACK)
    assert "fallback" not in said.strip().splitlines()[-1]
    role = role_of(workspace)
    assert (role["serving"], role["reason"], role["state"]) == (NEW, "", "READY")
    assert holders(host) == []
    answered_by_its_own(workspace)
    workspace.write_stack(STACK, sections(host))
    workspace.up(STACK)
    assert holders(host) == [f"reference.{NEW}"]
    answered_by_its_own(workspace)


@pytest.mark.usefixtures("ailing")
def test_without_a_fallback_up_fails_with_the_reason(workspace: Workspace, host: TestHost) -> None:
    workspace.change_model(NEW, weights=AILING)
    workspace.write_stack(STACK, sections(host, fallback=None))
    status, said = workspace.berth("up", STACK)
    assert status != 0
    assert "Traceback" not in said
    assert "EngineCore encountered an issue" in said
    assert "Nothing serves architect now, and no `fallback` is declared." in said
    assert host.gpu_mib() == [0, 0, 0, 0]
    with Reached.of(workspace, STACK).http() as http:
        refused = chat(http)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
        assert refused.json()["error"]["code"] == "role_not_loaded"
        assert "EngineCore encountered an issue" in refused.json()["error"]["message"]
        about = http.get("/v1/models").json()["data"][0]["berth"]
    assert (about["serving"], about["fallback"]) == (False, None)
    assert "EngineCore encountered an issue" in about["reason"]


@pytest.mark.usefixtures("ailing")
def test_once_it_is_mended_its_clients_are_answered(workspace: Workspace) -> None:
    workspace.restore_model(NEW)
    workspace.up(STACK)
    answered_by_its_own(workspace)
