"""`vllm serve`: vLLM's own server, of one model.

Its flags are the engine arguments' Python names with dashes (vLLM, `EngineArgs.add_cli_args`):
`--name value`, `--name` or `--no-name` for a truth value, JSON for a map. A few can only be set,
and are left out to be unset: with `--no-` the server ends with status 2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from components.renderers.weights import weights_path
from models.plan import Placement

INSIDE = 8000
METRICS = "/metrics"
HEALTH = "/health"
MARKS = (
    "aggregate_engine_logging", "data_parallel_multi_port_external_lb", "disable_log_stats",
    "grpc", "headless",
)  # fmt: skip
"""Truth values without a `--no-` form (`vllm serve --help` of 0.32)."""


def command(placement: Placement) -> list[str]:
    """The server's command line; it answers to the names of all its roles."""
    catalog = placement.catalog
    said: dict[str, object] = {
        "host": "0.0.0.0",  # noqa: S104 - the container's; the host publishes it on loopback
        "port": INSIDE,
        "served_model_name": sorted(placement.roles),
        "dtype": catalog.dtype,
        "max_model_len": catalog.max_model_len,
        "gpu_memory_utilization": placement.gpu_memory_utilization,
        "tensor_parallel_size": catalog.tensor_parallel_size,
        "pipeline_parallel_size": catalog.pipeline_parallel_size,
    }
    if catalog.quantization is not None:
        said["quantization"] = catalog.quantization
    if catalog.width > 1 and catalog.executor == "ray" and "executor" in catalog.model_fields_set:
        said["distributed_executor_backend"] = "ray"
    flags = [
        word
        for name, value in (said | dict(sorted(catalog.engine_args.items()))).items()
        for word in _flag(name, value)
    ]
    return ["vllm", "serve", weights_path(placement), *flags]


def served_name(placement: Placement) -> str:
    """Of several names, every answer and every metric carries the first (seen with 0.32)."""
    return min(placement.roles)


def environment(_placement: Placement) -> dict[str, str]:
    """An air-gapped host has no hub to ask, and usage statistics have nowhere to go."""
    return {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


def files(_placement: Placement) -> Mapping[str, str]:
    """It reads none but its weights."""
    return {}


def _flag(name: str, value: object) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if value is None or (value is False and name in MARKS):
        return []
    if value is True:
        return [flag]
    if value is False:
        return [f"--no-{flag[2:]}"]
    if isinstance(value, Mapping):
        return [flag, json.dumps(value, sort_keys=True)]
    if isinstance(value, list | tuple):
        return [flag, *map(str, value)]
    return [flag, str(value)]
