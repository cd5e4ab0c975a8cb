"""A real tritonserver behind a real sshd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.local_sshd import LocalSshd
from tests.triton.real_triton import RealTriton


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealTriton]:
    """A server for tests that leave it running; each takes model names of its own."""
    yield from _server(tmp_path_factory.mktemp("triton"))


@pytest.fixture
def own_triton(tmp_path: Path) -> Iterator[RealTriton]:
    """A server that the test may kill."""
    yield from _server(tmp_path / "triton")


def _server(place: Path) -> Iterator[RealTriton]:
    sshd = LocalSshd(place / "sshd")
    server = RealTriton(place, sshd)
    server.start()
    server.wait_live()
    yield server
    server.kill()
    sshd.stop()
