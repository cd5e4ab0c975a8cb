"""A sandbox host of the tests' own, beside anybody else's on the machine."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox import boot, container
from sandbox.process import run
from sandbox.settings import ADDRESS, USER, Settings
from sandbox.write_weights import write_weights


@dataclass(frozen=True)
class Host:
    """A running sandbox and the ways into it."""

    settings: Settings
    directory: Path

    def root(self, script: str, *, check: bool = True) -> str:
        return container.shell(self.settings.name, script, check=check)

    def ssh(self, command: str) -> str:
        known = self.directory / "known_hosts"
        key = (self.directory / "host_key.pub").read_text()
        known.write_text(f"[{ADDRESS}]:{self.settings.ssh_port} {key}")
        options = ["-i", str(self.directory / "id_ed25519"), "-p", str(self.settings.ssh_port)]
        options += ["-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=yes"]
        return run(["ssh", *options, f"{USER}@{ADDRESS}", command]).stdout.decode()

    def used_mib(self) -> list[int]:
        query = "nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits"
        return [int(line) for line in self.root(query).split()]


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """BERTH_TEST_SSH_PORT moves it; it is removed at the end, its images stay cached."""
    settings = Settings("berth-sandbox-test", int(os.environ.get("BERTH_TEST_SSH_PORT", "2399")), 4)
    directory = tmp_path_factory.mktemp("sandbox-host")
    boot.up(settings, directory)
    write_weights(settings.name, ["small:8:1024", "tiny:2:256"])
    yield Host(settings, directory)
    boot.down(settings.name, directory)
