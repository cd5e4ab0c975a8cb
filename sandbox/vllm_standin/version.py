"""Which vLLM is played, and what that changes (read in the sources of 0.17 to 0.33)."""

from __future__ import annotations

import os

GIB = 2**30
LOAD_SECONDS_PER_GIB = 0.06
"""A ninth of what a cold NVMe at 2 GB/s needs (0.54 s a GiB), so that tests stay short.

Triton itself adds some two seconds a load for its two Python processes.
"""
TOKEN_SECONDS = 0.01
"""Between two tokens of a sequence."""


def _played() -> tuple[int, ...]:
    return tuple(int(part) for part in os.environ.get("VLLM_VERSION", "0.19.1").split(".")[:2])


def default_utilization() -> float:
    return 0.92 if _played() >= (0, 20) else 0.90


def graphs_within_budget() -> bool:
    """CUDA graphs are subtracted from the KV pool from 0.20; before, they come on top."""
    return _played() >= (0, 20)


def load_seconds(weight_bytes: int) -> float:
    per_gib = float(os.environ.get("VLLM_LOAD_SECONDS_PER_GIB", LOAD_SECONDS_PER_GIB))
    return per_gib * weight_bytes / GIB
