"""TensorRT-LLM's LLM API in Triton's Python backend: one entry with `model.yaml`.

As `triton_backend/all_models/llmapi/tensorrt_llm` of TensorRT-LLM 1.0 to 1.3 has it: KIND_CPU with
count 1 makes one engine, which takes its GPUs itself (tensor × pipeline of those it sees). Batching
and decoupling are not config.pbtxt's: the model sets them from model.yaml's `triton_config`.
"""

from __future__ import annotations

import json

from components.renderers.engines import triton_vllm
from components.renderers.image_model import image_model
from components.renderers.tensors import tensor, tensors
from components.renderers.weights import weights_path
from models.plan import Placement

_SAMPLING = {
    "best_of": "INT32",
    "temperature": "FP32",
    "top_k": "INT32",
    "top_p": "FP32",
    "frequency_penalty": "FP32",
    "presence_penalty": "FP32",
    "max_tokens": "INT32",
    "seed": "UINT64",
    "exclude_input_from_output": "BOOL",
}
_FLAGS = ("return_finish_reason", "return_stop_reason", "return_cumulative_logprob", "stop")
CONFIG = (
    'backend: "python"\n'
    + tensors(
        "input",
        [
            tensor("text_input", "STRING", "-1"),
            tensor("streaming", "BOOL", optional=True),
            *(tensor(f"sampling_param_{n}", kind, optional=True) for n, kind in _SAMPLING.items()),
            tensor("sampling_param_stop", "STRING", "-1", optional=True),
            *(tensor(name, "BOOL", optional=True) for name in _FLAGS),
        ],
    )
    + tensors(
        "output",
        [
            *(tensor(n, "STRING", "-1") for n in ("text_output", "finish_reason", "stop_reason")),
            tensor("cumulative_logprob", "FP32", "-1"),
        ],
    )
    + "instance_group [ { count: 1, kind: KIND_CPU } ]\n"
)


def config(placement: Placement) -> str:
    """Triton's model configuration, the user's own where the catalog has one."""
    own = placement.catalog.config_pbtxt
    return CONFIG if own is None else own.rstrip() + "\n"


def arguments(placement: Placement) -> dict[str, object]:
    """What the catalog says of it, by vLLM's names: for people and for the rules. No engine
    reads it here."""
    return triton_vllm.arguments(placement)


def model_yaml(placement: Placement) -> dict[str, object]:
    """The LLM class's arguments, and how Triton calls the model.

    A stream needs `decoupled`. The KV cache is a share of what is free once the weights are there.
    """
    catalog = placement.catalog
    own = dict(catalog.trtllm_args)
    kv_cache = own.pop("kv_cache_config", {})
    assert isinstance(kv_cache, dict)  # noqa: S101 - models.trtllm has refused all else
    said: dict[str, object] = {
        "model": weights_path(placement),
        "backend": "pytorch",
        "dtype": catalog.dtype,
        "tensor_parallel_size": catalog.tensor_parallel_size,
        "pipeline_parallel_size": catalog.pipeline_parallel_size,
        "max_seq_len": catalog.max_model_len,
        "kv_cache_config": kv_cache
        | {"free_gpu_memory_fraction": placement.gpu_memory_utilization},
        "triton_config": {"max_batch_size": 0, "decoupled": True},
    }
    return said | own


def files(placement: Placement) -> dict[str, str]:
    """Its arguments, as JSON, which is YAML; and the image's own model."""
    text = json.dumps(model_yaml(placement), indent=2, sort_keys=True) + "\n"
    return {"1/model.yaml": text, "1/model.py": image_model("llmapi/tensorrt_llm")}


def parts(_placement: Placement) -> dict[str, dict[str, str]]:
    """One entry is the whole model."""
    return {}
