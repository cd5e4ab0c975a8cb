"""One sandbox host for the whole run, never the one of `make up`; workspaces of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.host import TestHost, booted
from tests.e2e.workspace import Workspace


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the host."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.sandbox)


@pytest.fixture(scope="session")
def host() -> Iterator[TestHost]:
    with booted("e2e") as made:
        yield made


@pytest.fixture(scope="module")
def workspace(host: TestHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = Workspace(tmp_path_factory.mktemp("project"), host)
    yield made
    made.end()
