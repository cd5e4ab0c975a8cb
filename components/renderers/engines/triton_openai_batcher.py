"""Triton's own OpenAI frontend in front of TensorRT-LLM's inflight batcher.

It is the frontend of `triton_openai`, and its entries are those of `triton_batcher`: Triton loads
an ensemble's parts with the ensemble that `--load-model` names.
"""

from __future__ import annotations

from components.renderers.engines import triton_openai
from models.plan import Placement
from models.trtllm import ORCHESTRATOR

INSIDE = triton_openai.INSIDE
METRICS = triton_openai.METRICS
HEALTH = triton_openai.HEALTH
served_name = triton_openai.served_name
files = triton_openai.files


def command(placement: Placement) -> list[str]:
    """The frontend's command line; its model's name is the ensemble's."""
    return triton_openai.frontend(placement, "tensorrtllm")


def environment(placement: Placement) -> dict[str, str]:
    """Offline, and on several GPUs with a worker for each: the frontend embeds Triton, so mpirun
    starts neither (server, `python/openai/README.md`)."""
    offline = {"HF_HUB_OFFLINE": "1", "TRTLLM_NO_USAGE_STATS": "1"}
    return offline | ({ORCHESTRATOR: "1"} if placement.catalog.width > 1 else {})
