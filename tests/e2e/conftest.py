"""One sandbox host for the whole run, never the one of `make up`; workspaces of their own."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the host."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.sandbox)


def free_ports(number: int) -> list[int]:
    """Ports on loopback that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture(scope="session")
def host() -> Iterator[TestHost]:
    with tempfile.TemporaryDirectory() as folder:
        ssh, gateway = free_ports(2)
        # Named after the process, so that runs side by side do not meet.
        made = TestHost(f"berth-e2e-{os.getpid()}", Path(folder) / "sandbox")
        place = ("--name", made.name, "--dir", str(made.directory))
        try:
            made.sandbox("up", *place, "--ssh-port", str(ssh), "--gateway-port", str(gateway))
            yield made
        finally:
            made.sandbox("down", *place)


@pytest.fixture(scope="module")
def workspace(host: TestHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = Workspace(tmp_path_factory.mktemp("project"), host)
    yield made
    made.end()
