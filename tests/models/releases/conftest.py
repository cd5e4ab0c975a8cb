"""The shipped tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.releases import load_releases
from models.releases.tables import Releases

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def releases() -> Releases:
    return load_releases(ROOT)
