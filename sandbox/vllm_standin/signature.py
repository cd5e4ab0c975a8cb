"""The inputs and outputs that NVIDIA's backend adds to a model's configuration."""

from __future__ import annotations

from typing import Any


def _optional(name: str, kind: str, size: int = 1) -> dict[str, Any]:
    return {"name": name, "data_type": f"TYPE_{kind}", "dims": [size], "optional": True}


INPUTS: list[dict[str, Any]] = [
    {"name": "text_input", "data_type": "TYPE_STRING", "dims": [1]},
    _optional("image", "STRING", -1),
    _optional("stream", "BOOL"),
    _optional("sampling_parameters", "STRING"),
    _optional("exclude_input_in_output", "BOOL"),
    _optional("return_finish_reason", "BOOL"),
    _optional("return_cumulative_logprob", "BOOL"),
    _optional("return_logprobs", "BOOL"),
    _optional("return_num_input_tokens", "BOOL"),
    _optional("return_num_output_tokens", "BOOL"),
    _optional("embedding_request", "STRING"),
]
OUTPUTS: list[dict[str, Any]] = [
    {"name": "text_output", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "finish_reason", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "cumulative_logprob", "data_type": "TYPE_FP32", "dims": [-1]},
    {"name": "logprobs", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "num_input_tokens", "data_type": "TYPE_UINT32", "dims": [1]},
    {"name": "num_output_tokens", "data_type": "TYPE_UINT32", "dims": [-1]},
]


def complete(config: Any) -> Any:
    """Add what is missing, decoupled and without batching, as vLLM does its own."""
    known = config.as_dict()
    given = {entry["name"] for entry in [*known["input"], *known["output"]]}
    for entry in INPUTS:
        if entry["name"] not in given:
            config.add_input(entry)
    for entry in OUTPUTS:
        if entry["name"] not in given:
            config.add_output(entry)
    config.set_model_transaction_policy({"decoupled": True})
    config.set_max_batch_size(0)
    return config
