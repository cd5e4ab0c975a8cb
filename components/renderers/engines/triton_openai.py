"""Triton's own OpenAI frontend: one server with one model loaded, of its vLLM backend.

It embeds Triton, and lists only what it loaded itself, so the model is named at its start
(EXPLICIT since 26.04). KServe's ports stay shut: it would open them without restrictions.
"""

from __future__ import annotations

from collections.abc import Mapping

from components.renderers.weights import weights_path
from models.plan import Placement

INSIDE = 9000
METRICS = "/metrics"
HEALTH = "/health/ready"
MAIN = "/opt/tritonserver/python/openai/openai_frontend/main.py"
DEFAULT_MAX_TOKENS = 16
"""As the frontend's and OpenAI's own for completions."""


def command(placement: Placement) -> list[str]:
    """The frontend's command line; its model's name is the repository entry's."""
    return frontend(placement, "vllm")


def frontend(placement: Placement, backend: str) -> list[str]:
    """Its command line.

    Args:
        backend: whose requests it forms: `vllm` or `tensorrtllm`. It loads what the entry says.
    """
    return [
        "python3",
        MAIN,
        f"--model-repository={placement.instance.host.repository}",
        "--model-control-mode=explicit",
        f"--load-model={placement.entry}",
        f"--backend={backend}",
        f"--tokenizer={weights_path(placement)}",
        "--host=0.0.0.0",
        f"--openai-port={INSIDE}",
        f"--default-max-tokens={DEFAULT_MAX_TOKENS}",
    ]


def served_name(placement: Placement) -> str:
    """Triton's model name."""
    return placement.entry


def environment(_placement: Placement) -> dict[str, str]:
    """An air-gapped host has no hub to ask."""
    return {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


def files(_placement: Placement) -> Mapping[str, str]:
    """Its repository entry is the demo's, as for Triton."""
    return {}
