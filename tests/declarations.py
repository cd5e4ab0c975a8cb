"""A small project to plan with: two hosts, three GPUs, what a test changes given on top."""

from __future__ import annotations

import copy
from typing import Any

from models.catalog import CatalogModel
from models.plan import Plan
from models.planning import make_plan
from models.stack import StackConfig
from models.validation import parse

G0 = "GPU-00000000-0000-0000-0000-000000000000"
G1 = "GPU-00000000-0000-0000-0000-000000000001"
G9 = "GPU-00000000-0000-0000-0000-000000000009"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF"

SECTIONS: dict[str, Any] = {
    "hosts": {
        "alpha": {
            "ssh": {"address": "alpha.test", "user": "berth", "host_key": KEY},
            "gpus": [
                {"uuid": G0, "index": 0, "memory_mib": 23034},
                {"uuid": G1, "index": 1, "memory_mib": 23034},
            ],
        },
        "beta": {
            "ssh": {"address": "beta.test", "host_key": KEY},
            "gpus": [{"uuid": G9, "index": 0, "memory_mib": 46068}],
        },
    },
    "instances": {
        "triton@0": {
            "host": "alpha",
            "gpus": [G0],
            "image": "triton@sha256:aa",
            "http_port": 8000,
            "metrics_port": 8100,
        },
        "triton@wide-01": {
            "host": "alpha",
            "gpus": [G0, G1],
            "image": "triton@sha256:aa",
            "http_port": 8010,
            "metrics_port": 8110,
        },
        "triton@b0": {
            "host": "beta",
            "gpus": [G9],
            "image": "triton@sha256:aa",
            "http_port": 8000,
            "metrics_port": 8100,
        },
    },
    "demo": {
        "name": "shop",
        "roles": {
            "architect": {"model": "big", "instance": "triton@wide-01"},
            "worker": {"model": "big", "instance": "triton@wide-01"},
            "sentry": {"model": "small", "instance": "triton@b0"},
        },
    },
}

CATALOG = {
    "big": {
        "weights": "big-nvfp4",
        "quantization": "modelopt_fp4",
        "tensor_parallel_size": 2,
        "max_model_len": 4096,
        "engine_args": {"seed": 0},
    },
    "small": {"weights": "small", "max_model_len": 8192, "gpu_memory_utilization": 0.5},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The sections with what stands at `a/b/0/c` set to `value`, or removed where it is None."""
    sections = copy.deepcopy(SECTIONS)
    *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    place: Any = sections
    for part in way:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return sections


def plan_of(sections: dict[str, Any], **catalog: dict[str, Any]) -> Plan:
    """The plan of stack `test`."""
    entries = {
        name: parse(CatalogModel, entry, f"catalog/{name}.yaml")
        for name, entry in (CATALOG | catalog).items()
    }
    config = parse(StackConfig, sections, "berth:")
    return make_plan("test", config, entries, known_models=sorted(entries))


def with_replicas(sections: dict[str, Any]) -> dict[str, Any]:
    """Sentry alone, on two instances of alpha: triton@1, which is its own, and triton@0."""
    ports = {"http_port": 8001, "metrics_port": 8101}
    added = {"triton@1": sections["instances"]["triton@0"] | {"gpus": [G1]} | ports}
    sentry = {"model": "small", "instance": "triton@1", "replicas": ["triton@0"]}
    demo = {"name": "shop", "roles": {"sentry": sentry}}
    return sections | {"instances": sections["instances"] | added, "demo": demo}
