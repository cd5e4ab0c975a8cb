"""`trtllm-serve`: TensorRT-LLM's own server, of one model, on its PyTorch back end.

Only flags that releases of 1.1 to 1.3 all know: an unknown one ends it. What else is set goes into
the file of LLM options. Which of the two wins has changed between releases (`serve.py`: first the
file, from the 1.3 line on the flag), so nothing stands in both. The file's maps take the place of
whole ones (`update_llm_args_with_extra_dict` ends in `llm_args | llm_args_dict`): beside a
`kv_cache_config` there the flag for its share of memory would be nothing.
"""

from __future__ import annotations

import json

from components.renderers.weights import weights_path
from models.plan import SERVERS, Placement

INSIDE = 8000
METRICS = "/prometheus/metrics"
HEALTH = "/health"
FLAGS = ("max_batch_size", "max_num_tokens", "max_beam_width", "trust_remote_code")
"""Arguments of an entry that are flags; those it leaves out are the server's to choose."""


def command(placement: Placement) -> list[str]:
    """The server's command line. The model's name is its directory's: any name is answered."""
    catalog = placement.catalog
    own = {name: catalog.trtllm_args[name] for name in FLAGS if name in catalog.trtllm_args}
    said: dict[str, object] = {
        "host": "0.0.0.0",  # noqa: S104 - the container's; the host publishes it on loopback
        "port": INSIDE,
        "backend": "pytorch",
        "tp_size": catalog.tensor_parallel_size,
        "pp_size": catalog.pipeline_parallel_size,
        "max_seq_len": catalog.max_model_len,
        "kv_cache_free_gpu_memory_fraction": catalog.gpu_memory_utilization,
        "extra_llm_api_options": options_file(placement),
    }
    if "kv_cache_config" in catalog.trtllm_args:
        del said["kv_cache_free_gpu_memory_fraction"]
    flags = []
    for name, value in (said | own).items():
        if value is True:
            flags.append(f"--{name}")
        elif value is not False:
            flags += [f"--{name}", str(value)]
    return ["trtllm-serve", "serve", weights_path(placement), *flags]


def served_name(placement: Placement) -> str:
    """The last segment of its directory (`serve.py`)."""
    return placement.catalog.weights


def environment(_placement: Placement) -> dict[str, str]:
    """An air-gapped host has no hub to ask, and usage statistics have nowhere to go."""
    return {"HF_HUB_OFFLINE": "1", "TRTLLM_NO_USAGE_STATS": "1"}


def options_file(placement: Placement) -> str:
    """Path of its LLM options, on the host and in the container."""
    assert placement.server is not None  # noqa: S101 - the engine has one for life
    return f"{SERVERS}/{placement.server.name}.yaml"


def files(placement: Placement) -> dict[str, str]:
    """Its LLM options: metrics on, without which its Prometheus path is 404, and the user's own.

    As JSON, which is YAML: nothing of a user's needs quoting then.
    """
    options: dict[str, object] = {"enable_iter_perf_stats": True, "return_perf_metrics": True}
    catalog = placement.catalog
    own = {k: v for k, v in catalog.trtllm_args.items() if k not in FLAGS}
    if "kv_cache_config" in own:
        kv_cache = own["kv_cache_config"]
        assert isinstance(kv_cache, dict)  # noqa: S101 - models.trtllm has refused all else
        share = catalog.gpu_memory_utilization
        own["kv_cache_config"] = {**kv_cache, "free_gpu_memory_fraction": share}
    return {options_file(placement): json.dumps(options | own, indent=2, sort_keys=True) + "\n"}
