"""The root cause that an engine left in its unit's journal."""

from __future__ import annotations

from components.providers.engine_log import explaining

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB."


def test_the_cause_is_found_among_what_the_engine_says() -> None:
    lines = [
        "INFO 11-21 08:20:01 [core.py:77] Initializing a V1 LLM engine",
        "ERROR Failed to load model - not enough GPU memory.",
        f"(EngineCore_DP0 pid=336) {OOM}",
        "RuntimeError: Engine core initialization failed. See root cause above.",
        "I1121 08:20:03.1 7 server.cc:674] Unloading",
    ]
    assert explaining(lines).endswith(OOM)


def test_the_last_trouble_counts_not_one_that_was_got_over() -> None:
    last = "ValueError: No available memory for the cache blocks."
    assert explaining(["NCCL WARN something", last]) == last


def test_a_log_that_explains_nothing_gives_nothing() -> None:
    assert explaining(["all is well", "Engine core initialization failed"]) == ""
