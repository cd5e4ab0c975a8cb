"""Fixtures for what goes through SSH."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.providers.local_sshd import SSHD, LocalSshd


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSshd]:
    """A real sshd on a loopback port."""
    if not SSHD.exists():
        pytest.fail("sshd is missing: install openssh-server")
    server = LocalSshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()
