"""An image built on the host: it serves, changes with its inputs alone, and is judged first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace, only, reference

STACK = "built"
AUDITOR, SENTRY = "gemma-4-e4b-it", "gemma-4-e2b-it"
PORT, UNIT = 8202, "reference-auditor.service"
BASE = "berth-sandbox/vllm-openai:0.32.0"
SITE = "/usr/local/lib/python3.11/dist-packages"
RECIPE = f"""\
ARG BASE
FROM ${{{{BASE}}}}
COPY newer.sh /tmp/
# As pip would leave it; the stand-in's image has no pip.
RUN sh /tmp/newer.sh transformers {{version}} && echo {{mark}} > {SITE}/mark
"""
NEWER = f"""\
cd {SITE}
mv "$1"-*.dist-info "$1-$2.dist-info"
printf 'Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n' "$1" "$2" > "$1-$2.dist-info/METADATA"
printf '__version__ = "%s"\\n' "$2" > "$1/__init__.py"
"""


def write(workspace: Workspace, version: str = "5.17.0", mark: str = "one") -> None:
    """The build's directory in the project."""
    folder = workspace.folder / "serving/newer"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(RECIPE.format(version=version, mark=mark))
    (folder / "newer.sh").write_text(NEWER)


def sections(host: TestHost, **build: Any) -> dict[str, Any]:
    """Auditor on the build, Sentry in Triton beside it."""
    roles = {"auditor": (AUDITOR, "triton@2"), "sentry": (SENTRY, "triton@3")}
    made = only(reference(host), "triton@2", "triton@3", **roles)
    made["demo"]["roles"]["auditor"]["engine"] = "vllm"
    made["images"] = {"vllm": "build:newer"}
    made["builds"] = {"newer": {"context": "serving/newer", "args": {"BASE": BASE}} | build}
    return made


def serving(host: TestHost) -> str:
    """What tells one running server from another; it answers under its role's name."""
    said = json.loads(host.sh(f"curl -s -m 10 http://127.0.0.1:{PORT}/v1/models"))
    assert [model["id"] for model in said["data"]] == ["auditor"]
    return host.sh(f"systemctl show -p MainPID,ActiveEnterTimestampMonotonic --value {UNIT}")


def image_of_container(host: TestHost) -> str:
    named = "docker ps --quiet --filter label=berth.instance=reference-auditor"
    return host.sh(f"docker inspect --format '{{{{.Image}}}}' $({named})")


@pytest.fixture(scope="module")
def up(workspace: Workspace, host: TestHost) -> Iterator[None]:
    write(workspace)
    workspace.write_stack(STACK, sections(host))
    said = workspace.up(STACK)
    assert "build `newer` was not made yet" in said
    yield
    write(workspace)
    workspace.write_stack(STACK, sections(host))
    workspace.down(STACK)


@pytest.mark.usefixtures("up")
def test_a_role_serves_from_an_image_that_its_host_built(
    workspace: Workspace, host: TestHost
) -> None:
    assert serving(host)
    built = workspace.outputs(STACK)["builds"]["sandbox/newer"]
    assert built["versions"] == {"vllm": "0.32.0", "transformers": "5.17.0", "torch": "2.13.0"}
    assert built["image"] == image_of_container(host)
    assert (
        host.sh(f"docker image inspect --format '{{{{.Id}}}}' {built['reference']}")
        == (built["image"])
    )


@pytest.mark.usefixtures("up")
def test_a_second_up_builds_nothing_and_warns_of_nothing_unknown(
    workspace: Workspace, host: TestHost
) -> None:
    before = serving(host)
    said = workspace.up(STACK)
    assert "nothing to change" in said
    assert "not made yet" not in said
    assert serving(host) == before


@pytest.mark.usefixtures("up")
def test_another_line_in_the_recipe_replaces_image_and_server_and_nothing_else(
    workspace: Workspace, host: TestHost
) -> None:
    before, image, loads = serving(host), image_of_container(host), host.loads("3")
    write(workspace, mark="two")
    workspace.up(STACK)
    assert serving(host) != before
    assert image_of_container(host) != image
    assert host.loads("3") == loads
    assert "nothing to change" in workspace.up(STACK)


@pytest.mark.usefixtures("up")
def test_a_build_that_fails_says_what_it_printed_and_leaves_the_old_one_serving(
    workspace: Workspace, host: TestHost
) -> None:
    workspace.up(STACK)
    before = serving(host)
    folder = workspace.folder / "serving/newer"
    (folder / "newer.sh").write_text("echo 'No matching distribution: $1' >&2; exit 3\n")
    status, said = workspace.berth("up", STACK)
    assert status != 0
    assert "berth:builds.newer: the image cannot be built on sandbox: `RUN sh /tmp/newer.sh" in said
    assert "No matching distribution" in said
    assert "what served goes on serving" in said
    assert "Traceback" not in said
    assert serving(host) == before
    assert host.answers(8003, f"reference.{SENTRY}")
    write(workspace)
    workspace.up(STACK)


@pytest.mark.usefixtures("up")
def test_a_build_that_cannot_run_its_model_is_refused_before_the_old_one_is_stopped(
    workspace: Workspace, host: TestHost
) -> None:
    workspace.up(STACK)
    before = serving(host)
    write(workspace, version="4.57.0")
    status, said = workspace.berth("up", STACK)
    assert status != 0
    assert "transformers 4.57.0" in said
    assert f"{AUDITOR} is gemma4, which needs transformers" in said
    assert "Traceback" not in said
    assert serving(host) == before
    # It is known now, so a preview says it.
    status, said = workspace.pulumi("preview", "--stack", STACK)
    assert status != 0
    assert "transformers 4.57.0" in said
    write(workspace)
    workspace.up(STACK)


@pytest.mark.usefixtures("up")
def test_a_build_that_holds_something_else_than_declared_is_refused(
    workspace: Workspace, host: TestHost
) -> None:
    before = serving(host)
    write(workspace, mark="three")
    workspace.write_stack(STACK, sections(host, versions={"transformers": "5.18.0"}))
    status, said = workspace.berth("up", STACK)
    assert status != 0
    assert "transformers 5.18.0 is declared, and the image holds transformers 5.17.0" in said
    assert serving(host) == before


@pytest.mark.usefixtures("up")
def test_a_model_stays_in_triton_until_the_build_that_is_to_take_it_over_is_found_good(
    workspace: Workspace, host: TestHost
) -> None:
    made = sections(host)
    made["demo"]["roles"]["auditor"]["engine"] = "triton-vllm"
    workspace.write_stack(STACK, made)
    workspace.up(STACK)
    loads = host.loads("2")
    workspace.write_stack(STACK, sections(host))
    write(workspace, version="4.57.1")
    status, said = workspace.berth("up", STACK)
    assert status != 0
    assert "transformers 4.57.1" in said
    assert "also what this stack no longer declares" in said
    assert "Traceback" not in said
    assert host.answers(8002, f"reference.{AUDITOR}")
    assert host.loads("2") == loads
    write(workspace)
    workspace.up(STACK)
    assert serving(host)


@pytest.mark.usefixtures("up")
def test_an_unknown_build_is_refused_with_those_that_there_are(
    workspace: Workspace, host: TestHost
) -> None:
    made = sections(host)
    made["images"] = {"vllm": "build:never"}
    workspace.write_stack(STACK, made)
    status, said = workspace.pulumi("preview", "--stack", STACK)
    assert status != 0
    assert "berth:images.vllm: no build `never`" in said
    assert "builds declared: newer." in said
