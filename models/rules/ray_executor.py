"""The executor that the image's release asks for, where a model spans several GPUs."""

from __future__ import annotations

from models.engine import VLLM_ENTRY
from models.finding import Finding
from models.judged import Judged
from models.releases.executor import executor_findings
from models.rules.parallelism import split

NAME = "ray-executor"
DESCRIPTION = "A model on several GPUs runs its workers by ray, where the release asks for it."
REMEDY = "Set `executor: ray` in the catalog, on an image that holds ray."


def findings(judged: Judged) -> list[Finding]:
    """One for each model whose workers would not start."""
    found = []
    for model in judged.models:
        if model.engine not in VLLM_ENTRY:
            continue  # vLLM's own server and TensorRT-LLM start their workers themselves.
        tensor, pipeline = split(model) or (1, 1)
        told = model.engine_args.get("distributed_executor_backend")
        # Without one, vLLM takes `mp` on one host (vllm/config/parallel.py).
        executor = told if isinstance(told, str) and told else "mp"
        found += executor_findings(
            model.image,
            tensor * pipeline,
            executor,
            judged.releases,
            at=f"{model.file}: executor",
            model=model.model or model.entry,
        )
    return found
