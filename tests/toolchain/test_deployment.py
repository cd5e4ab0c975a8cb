"""The toolchain deploys: the CLI, the language host and both plugins find one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolchain.conftest import Toolchain
from tests.toolchain.program import Program

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(3600)]

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0LWtleS1tYXRlcmlhbA\n-----END-----"


@pytest.fixture
def program(toolchain: Toolchain, tmp_path: Path) -> Program:
    return Program(toolchain, tmp_path)


def test_a_program_is_previewed_deployed_and_destroyed_without_a_warning(program: Program) -> None:
    mark = program.folder / "mark"
    program.write(
        f"""
        import pulumi
        from pulumi_command import local

        made = local.Command("made", create="touch {mark}; echo there", delete="rm {mark}")
        pulumi.export("said", made.stdout)
        """
    )
    said = program.must("stack", "init", "organization/small/test")
    said += program.must("preview")
    assert not mark.exists()
    said += program.must("up", "--yes", "--skip-preview")
    assert mark.exists()
    assert program.must("stack", "output", "said").strip() == "there"
    program.must("preview", "--expect-no-changes")
    said += program.must("destroy", "--yes", "--skip-preview")
    assert not mark.exists()
    assert "warning" not in said


def test_a_dynamic_provider_runs(program: Program) -> None:
    program.write(
        """
        import pulumi
        from pulumi.dynamic import CreateResult, Resource, ResourceProvider

        class Echo(ResourceProvider):
            def create(self, props):
                return CreateResult("one", {"word": props["word"]})

        class Word(Resource):
            word: pulumi.Output[str]
            def __init__(self, name, word):
                super().__init__(Echo(), name, {"word": word})

        pulumi.export("word", Word("word", "ahoy").word)
        """
    )
    program.must("stack", "init", "organization/small/test")
    said = program.must("up", "--yes", "--skip-preview")
    assert program.must("stack", "output", "word").strip() == "ahoy"
    assert "warning" not in said


def test_the_docker_plugin_is_found_without_a_warning(program: Program) -> None:
    program.write(
        f"""
        import pulumi
        import pulumi_docker as docker

        nowhere = docker.Provider("nowhere", host="unix://{program.folder}/none.sock")
        docker.Volume("weights", name="weights", opts=pulumi.ResourceOptions(provider=nowhere))
        """
    )
    program.must("stack", "init", "organization/small/test")
    said = program.must("preview")
    assert "docker:index:Volume" in said
    assert "warning" not in said


def test_a_misspelt_field_does_not_print_the_connections_key(program: Program) -> None:
    program.write(
        f"""
        import pulumi

        connection = {{"host": "127.0.0.1", "privateKey": {KEY!r}, "dialErrorLimt": 1}}
        pulumi.CustomResource("command:remote:Command", "odd",
            {{"connection": connection, "create": "true"}},
            pulumi.ResourceOptions(version="1.2.1"))
        """
    )
    program.must("stack", "init", "organization/small/test")
    code, said = program.pulumi("preview")
    assert code != 0
    assert "dialErrorLimt" in said
    assert "c2VjcmV0LWtleS1tYXRlcmlhbA" not in said
