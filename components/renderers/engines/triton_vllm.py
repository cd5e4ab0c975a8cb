"""Triton's vLLM backend: one entry, whose `model.json` is vLLM's engine arguments.

KIND_MODEL with count 1 makes exactly one engine, whatever GPUs are visible; KIND_GPU would make
one for each, and all would crash (Triton, model configuration: instance groups).
"""

from __future__ import annotations

from collections.abc import Mapping

from components.renderers.weights import weights_path
from models.plan import Placement

CONFIG = """\
backend: "vllm"
max_batch_size: 0
model_transaction_policy { decoupled: true }
instance_group [ { count: 1, kind: KIND_MODEL } ]
parameters { key: "REPORT_CUSTOM_METRICS", value: { string_value: "true" } }
"""


def config(placement: Placement) -> str:
    """Triton's model configuration, the user's own where the catalog has one."""
    own = placement.catalog.config_pbtxt
    return CONFIG if own is None else own.rstrip() + "\n"


def arguments(placement: Placement) -> dict[str, object]:
    """vLLM's engine arguments."""
    catalog = placement.catalog
    args: dict[str, object] = {
        "model": weights_path(placement),
        "dtype": catalog.dtype,
        "max_model_len": catalog.max_model_len,
        "gpu_memory_utilization": placement.gpu_memory_utilization,
        "tensor_parallel_size": catalog.tensor_parallel_size,
        "pipeline_parallel_size": catalog.pipeline_parallel_size,
    }
    if catalog.quantization is not None:
        args["quantization"] = catalog.quantization
    if catalog.width > 1:
        args["distributed_executor_backend"] = catalog.executor
    return args | catalog.further_args(placement.engine)


def files(_placement: Placement) -> Mapping[str, str]:
    """`model.json` says it all."""
    return {}


def parts(_placement: Placement) -> Mapping[str, Mapping[str, str]]:
    """One entry is the whole model."""
    return {}
