"""A demo whose architect is served by a server of its own."""

from __future__ import annotations

import copy
from typing import Any

from models.plan import Placement
from tests.declarations import SECTIONS, plan_of

IMAGES = {
    "vllm": "vllm@sha256:bb",
    "trtllm-serve": "trt@sha256:cc",
    "triton-openai": "tri@sha256:dd",
    "triton-openai-batcher": "tri@sha256:ee",
}


def sections(engine: str, **role: Any) -> dict[str, Any]:
    """Architect and worker on an engine of their own."""
    changed = copy.deepcopy(SECTIONS) | {"images": IMAGES}
    for name in ("architect", "worker"):
        changed["demo"]["roles"][name] |= {"engine": engine}
    changed["demo"]["roles"]["architect"] |= role
    return changed


def placed(engine: str, role: str = "architect", **big: Any) -> Placement:
    """A role's load under an engine; `big` changes its model's catalog entry."""
    entry = {
        "weights": "big-nvfp4",
        "quantization": "modelopt_fp4",
        "tensor_parallel_size": 2,
        "max_model_len": 4096,
        "engine_dir": "big-built",
        "engine_args": {"seed": 0},
    }
    return plan_of(sections(engine), big=entry | big).roles[role]
