"""What makes a server of one model's own another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policy.loads import SERVED
from tests.declarations import plan_of
from tests.resources import test_stack

IMAGES = {"trtllm-serve": "trt@sha256:cc", "triton-openai": "tri@sha256:dd", "vllm": "v@sha256:ee"}
SMALL = {"weights": "small", "max_model_len": 8192, "gpu_memory_utilization": 0.5}


def served(place: Path, engine: str, **small: Any) -> tuple[dict[str, Any], str]:
    """The container of sentry's server, and which process its model is held by."""
    sections = test_stack.with_key_files(place) | {"images": IMAGES}
    sections["demo"]["roles"]["sentry"]["engine"] = engine
    recorder, _ = test_stack.declared(plan_of(sections, small=SMALL | small), place)
    containers = recorder.of_type(test_stack.CONTAINER)
    return containers["shop-sentry"], recorder.of_type(SERVED)["shop-sentry"]["incarnation"]


@pytest.mark.parametrize(
    ("engine", "changed"),
    [
        ("triton-openai", {"max_model_len": 2048}),
        ("triton-openai", {"gpu_memory_utilization": 0.4}),
        ("trtllm-serve", {"trtllm_args": {"guided_decoding_backend": "xgrammar"}}),
    ],
)
def test_what_it_reads_at_its_start_makes_it_another_process(
    tmp_path: Path, engine: str, changed: dict[str, Any]
) -> None:
    container, incarnation = served(tmp_path, engine)
    same, another = served(tmp_path, engine, **changed)
    assert same == container
    assert another != incarnation
    assert served(tmp_path, engine)[1] == incarnation


def test_one_that_is_told_all_on_its_command_line_is_its_container(tmp_path: Path) -> None:
    assert served(tmp_path, "vllm")[1] == "shop-sentry-id/beta/shop-sentry-id"
