"""Bad input, through the real engine: cause, consequence, fix, no traceback, nothing touched."""

from __future__ import annotations

import copy
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace, only, reference

STACK = "bad"
REFUSED_WITHIN_S = 20
UNKNOWN = "GPU-00000000-0000-0000-0000-00000000000f"


@pytest.fixture
def sections(host: TestHost) -> dict[str, Any]:
    """A stack that would come up."""
    good = only(reference(host), "triton@0", "triton@1", guard=("gemma-4-e2b-it", "triton@0"))
    return copy.deepcopy(good)


def refused(workspace: Workspace, sections: dict[str, Any]) -> str:
    """What a person is told; and that the host was left alone."""
    workspace.write_stack(STACK, sections)
    status, said = workspace.berth("preview", STACK)
    assert status != 0, said
    assert "Traceback" not in said, said
    assert "RuntimeWarning" not in said, said
    assert workspace.host.ours() == dict.fromkeys(workspace.host.ours(), "")
    return said


def edit(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set what stands at a/b/c."""

    def change(sections: dict[str, Any]) -> None:
        *way, last = path.split("/")
        place: Any = sections
        for part in way:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[int(last) if isinstance(place, list) else last] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (edit("instanzes", {}), "berth:instanzes: unknown key `instanzes`"),
        (edit("hosts/sandbox/ssh/prt", 22), "did you mean `port`?"),
        (
            edit("instances/triton@0/http_port", "high"),
            "http_port: input should be a valid integer",
        ),
        (edit("instances/triton@0/gpus", [UNKNOWN]), f"no host has {UNKNOWN}"),
        (edit("demo/roles/guard/model", "gpt"), "no model `gpt` in the catalog"),
        (edit("demo/roles/guard/instance", "triton@9"), "no instance `triton@9`"),
        (edit("demo/roles/guard/model", "gemma-4-31b-it-nvfp4"), "= 2 GPU(s), triton@0 has 1"),
        (edit("instances/triton@0/http_port", 8001), "port 8001 of host `sandbox` is used twice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_declarations_are_refused_at_preview(
    workspace: Workspace,
    sections: dict[str, Any],
    change: Callable[[dict[str, Any]], None],
    says: str,
) -> None:
    change(sections)
    said = refused(workspace, sections)
    assert says in said
    assert "Nothing was touched." in said


def test_a_gpu_listed_twice_is_refused(workspace: Workspace, sections: dict[str, Any]) -> None:
    gpus = sections["instances"]["triton@0"]["gpus"]
    gpus.append(gpus[0])
    assert "is listed twice" in refused(workspace, sections)


def test_a_gpu_that_the_host_does_not_have_is_refused(
    workspace: Workspace, sections: dict[str, Any]
) -> None:
    sections["hosts"]["sandbox"]["gpus"].append({"uuid": UNKNOWN, "index": 7, "memory_mib": 23034})
    said = refused(workspace, sections)
    assert f"GPU 7 ({UNKNOWN}) is not there" in said


def test_a_host_that_is_not_reachable_is_refused_in_time(
    workspace: Workspace, sections: dict[str, Any]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        sections["hosts"]["sandbox"]["ssh"]["port"] = closed.getsockname()[1]
        in_time(workspace, sections, "cannot reach the host over SSH")


def test_a_host_that_never_answers_is_refused_in_time(
    workspace: Workspace, sections: dict[str, Any]
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        sections["hosts"]["sandbox"]["ssh"]["port"] = silent.getsockname()[1]
        in_time(workspace, sections, "host")


def test_a_refused_key_is_named(workspace: Workspace, sections: dict[str, Any]) -> None:
    key = workspace.folder / "other_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    sections["hosts"]["sandbox"]["ssh"]["private_key_file"] = key.name
    said = in_time(workspace, sections, "berth")
    assert "key" in said


def test_a_changed_host_key_is_never_accepted(
    workspace: Workspace, sections: dict[str, Any]
) -> None:
    other = (workspace.folder / ".berth/sandbox/id_ed25519.pub").read_text().split()[:2]
    ssh = sections["hosts"]["sandbox"]["ssh"]
    del ssh["host_key_file"]
    ssh["host_key"] = " ".join(other)
    said = in_time(workspace, sections, "SHA256:")
    assert said.count("SHA256:") >= 2


def in_time(workspace: Workspace, sections: dict[str, Any], says: str) -> str:
    started = time.monotonic()
    said = refused(workspace, sections)
    assert time.monotonic() - started < REFUSED_WITHIN_S
    assert says in said
    assert "Fix: " in said
    return said


@pytest.fixture
def hidden(host: TestHost) -> Iterator[Callable[[str], None]]:
    """Takes programs away from the host until the test ends."""
    gone: list[str] = []

    def hide(path: str) -> None:
        host.sh(f"mv {path} {path}.hidden")
        gone.append(path)

    yield hide
    for path in gone:
        host.sh(f"mv {path}.hidden {path}")


def test_a_host_without_docker_is_refused(
    workspace: Workspace, sections: dict[str, Any], hidden: Callable[[str], None]
) -> None:
    hidden("/usr/bin/docker")
    assert "Docker is not installed" in refused_without_docker(workspace, sections)


def refused_without_docker(workspace: Workspace, sections: dict[str, Any]) -> str:
    workspace.write_stack(STACK, sections)
    status, said = workspace.berth("preview", STACK)
    assert status != 0
    assert "Traceback" not in said
    return said


def test_a_host_without_nvidias_runtime_is_refused(
    workspace: Workspace, sections: dict[str, Any], hidden: Callable[[str], None]
) -> None:
    hidden("/usr/bin/nvidia-container-runtime-hook")
    assert "nvidia-container-toolkit" in refused(workspace, sections)


def test_a_host_without_a_driver_is_refused(
    workspace: Workspace, sections: dict[str, Any], hidden: Callable[[str], None]
) -> None:
    hidden("/usr/bin/nvidia-smi")
    assert "no GPU can be used" in refused(workspace, sections)


def test_a_port_that_somebody_else_uses_is_refused(
    workspace: Workspace, sections: dict[str, Any], host: TestHost
) -> None:
    listener = "socket.create_server(('127.0.0.1', 8000)); time.sleep(600)"
    host.sh(f'setsid python3 -c "import socket, time; s = {listener}" >/dev/null 2>&1 & sleep 0.5')
    try:
        assert "port 8000 is in use by something" in refused(workspace, sections)
    finally:
        host.sh("pkill -f create_server")


def test_a_stack_without_a_config_is_refused(workspace: Workspace) -> None:
    status, said = workspace.berth("up", "nowhere")
    assert status != 0
    assert "no config of a stack `nowhere`" in said
    assert "Traceback" not in said


def test_an_unknown_role_is_refused_with_the_known_ones(
    workspace: Workspace, sections: dict[str, Any]
) -> None:
    workspace.write_stack(STACK, sections)
    status, said = workspace.berth("ask", "boss", "hello", "--stack", STACK)
    assert status != 0
    assert "its roles: guard" in said
