"""A repository entry: `config.pbtxt` and `1/model.json` for Triton's vLLM backend.

KIND_MODEL with count 1 makes exactly one engine, whatever GPUs are visible; KIND_GPU would make
one for each, and all would crash (Triton, model configuration: instance groups).
"""

from __future__ import annotations

import hashlib
import json

from models.plan import Placement

HEAD = """\
# Rendered by Berth from catalog/{model}.yaml. A change made here by hand is undone by `pulumi up`.
"""
CONFIG = """\
backend: "vllm"
max_batch_size: 0
model_transaction_policy { decoupled: true }
instance_group [ { count: 1, kind: KIND_MODEL } ]
parameters { key: "REPORT_CUSTOM_METRICS", value: { string_value: "true" } }
"""
DIGEST = """\
parameters {{ key: "berth_digest", value: {{ string_value: "{digest}" }} }}
"""


def weights_path(placement: Placement) -> str:
    """The model's weights, the same path on the host and in the container."""
    return f"{placement.instance.host.weights}/{placement.catalog.weights}"


def engine_args(placement: Placement) -> dict[str, object]:
    """vLLM's engine arguments, the content of `model.json`."""
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
    return args | catalog.engine_args


def digest(placement: Placement) -> str:
    """SHA-256 over all that an engine is made from; the server gives it back in its config."""
    made_from = json.dumps([_config(placement), engine_args(placement)], sort_keys=True)
    return hashlib.sha256(made_from.encode()).hexdigest()


def _config(placement: Placement) -> str:
    """Triton's model configuration, the user's own where the catalog has one."""
    own = placement.catalog.config_pbtxt
    return CONFIG if own is None else own.rstrip() + "\n"


def entry_files(placement: Placement) -> dict[str, str]:
    """Relative path → text."""
    head = HEAD.format(model=placement.model)
    return {
        "config.pbtxt": head + _config(placement) + DIGEST.format(digest=digest(placement)),
        "1/model.json": json.dumps(engine_args(placement), indent=2) + "\n",
    }
