"""Servers read weights and repository, and write neither."""

from __future__ import annotations

import pytest

from models.judged import Mounted
from models.rules import read_only_weights
from tests.models.rules.plans import GOOD, refused, with_instance


def test_read_only_mounts_and_a_cache_beside_pass() -> None:
    assert not read_only_weights.findings(GOOD)
    cache = Mounted("/data/triton/cache", "/root/.cache", False)
    beside = Mounted("/data/triton/weights-old", "/old", False)
    assert not read_only_weights.findings(with_instance(mounts=(cache, beside)))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("/data/triton/weights", "/w"),
        ("/data/triton/weights/gemma", "/w"),
        ("/data/triton/models/", "/m"),
        ("/data", "/everything"),
        ("/", "/host"),
        ("/data/x/../triton/weights", "/w"),
        ("//data//triton", "/w"),
        ("/tmp/other", "/data/triton/weights"),
        ("/tmp/other", "/data"),
    ],
)
def test_a_writable_mount_over_under_or_at_them_is_refused(source: str, target: str) -> None:
    text = refused(read_only_weights, with_instance(mounts=(Mounted(source, target, False),)))
    assert "triton@0 may write /data/triton/" in text
    assert f"through its mount of {source} at {target}" in text
    assert "read_only: true" in text
