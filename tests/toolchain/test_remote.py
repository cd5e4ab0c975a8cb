"""What the program does on a host goes through the CLI, the SDK and the plugin together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.toolchain.conftest import Toolchain
from tests.toolchain.program import Program
from tests.toolchain.ssh_host import SshHost, ssh_host

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(3600)]


def source(host: SshHost, folder: Path, command: str) -> str:
    connection = {
        "host": "127.0.0.1",
        "port": host.port,
        "user": host.user,
        "private_key": host.private_key,
        "host_key": host.host_key,
    }
    return f"""
        import pulumi
        from pulumi_command import remote

        connection = remote.ConnectionArgs(**{connection!r})
        entry = remote.CopyToRemote(
            "entry", connection=connection, remote_path="{folder}/there",
            source=pulumi.FileArchive("{folder}/entry"),
        )
        ran = remote.Command(
            "ran", connection=connection, create="{command}", stdin=pulumi.Output.secret("s3cr3t"),
            logging=remote.Logging.NONE, opts=pulumi.ResourceOptions(depends_on=entry),
        )
        pulumi.export("said", ran.stdout)
        """


def test_a_directory_is_copied_and_a_command_run_and_nothing_shows_the_secrets(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    (tmp_path / "entry" / "1").mkdir(parents=True)
    (tmp_path / "entry" / "1" / "model.json").write_text("{}")
    program = Program(toolchain, tmp_path)
    with ssh_host(tmp_path) as host:
        key_line = host.private_key.splitlines()[1]
        program.write(source(host, tmp_path, f"ls {tmp_path}/there/entry/1"))
        said = program.must("stack", "init", "organization/small/test")
        said += program.must("up", "--yes", "--skip-preview")
        assert program.must("stack", "output", "said").strip() == "model.json"
        assert key_line not in json.dumps(json.loads(program.must("stack", "export")))
        said += program.must("preview", "--diff", "--expect-no-changes")

        program.write(source(host, tmp_path, "cat >&2; exit 9"))
        code, failed = program.pulumi("up", "--yes", "--skip-preview")
        assert code != 0
        assert "exit status 9" in failed
        for secret in ("s3cr3t", key_line):
            assert secret not in said + failed
