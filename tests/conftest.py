"""What runs on which worker: stories stay together, hosts are shared."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHARES_A_HOST = ("e2e", "sandbox")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker takes all end-to-end tests, which share a host and take as long as all others."""
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        together = folder if folder in SHARES_A_HOST else str(item.path)
        item.add_marker(pytest.mark.xdist_group(together))
