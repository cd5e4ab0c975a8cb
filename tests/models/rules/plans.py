"""A small stack that every rule lets pass, and what a test changes about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from config.releases import load_releases
from models.finding import Finding
from models.judged import (
    Judged,
    JudgedGpu,
    JudgedHost,
    JudgedInstance,
    JudgedModel,
    JudgedService,
    Mounted,
    Published,
)
from models.judging import Rule
from models.overlap import Claim
from models.weights import TensorGroup, Weights

ROOT = Path(__file__).parents[3]
RELEASES = load_releases(ROOT)
G0, G1, G2 = (f"GPU-00000000-0000-0000-0000-00000000000{n}" for n in range(3))
DIGEST = "sha256:" + "0a" * 32
IMAGE = f"nvcr.io/nvidia/tritonserver:26.06-vllm-python-py3@{DIGEST}"
MIB = 2**20

UNIT = """\
[Unit]
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Restart=always
RestartSec=2
"""
CONFIG = 'backend: "vllm"\ninstance_group [ { count: 1, kind: KIND_MODEL } ]\n'

# Four layers of 4 heads of 64: 8,000 MiB of weights.
WEIGHTS = Weights(
    config={
        "model_type": "llama",
        "num_hidden_layers": 4,
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "vocab_size": 1024,
        "max_position_embeddings": 131072,
    },
    groups=(
        TensorGroup(
            name="model.layers.*.mlp.up_proj.weight",
            dtype="BF16",
            shape=(1024, 1024000),
            bytes=2000 * MIB,
            count=4,
            layers=((0, 3, 1),),
        ),
    ),
    files=1,
)

HOST = JudgedHost(
    name="alpha",
    gpus=tuple(JudgedGpu(uuid, n, 23034, 22565) for n, uuid in enumerate((G0, G1, G2))),
    driver="610.43.02",
    found={G0: 0, G1: 1, G2: 2},
)


def instance(name: str, *gpus: str, port: int = 8000, **changed: Any) -> JudgedInstance:
    """A server that nobody can object to."""
    made = JudgedInstance(
        name=name,
        host="alpha",
        gpus=gpus,
        image=IMAGE,
        published=(Published("127.0.0.1", port, 8000), Published("127.0.0.1", port + 100, 8002)),
        mounts=(
            Mounted("/data/triton/models", "/data/triton/models", True),
            Mounted("/data/triton/weights", "/data/triton/weights", True),
        ),
        unit=UNIT,
    )
    return replace(made, **changed)


def model(
    name: str, on: str, *gpus: str, args: dict[str, object] | None = None, **changed: Any
) -> JudgedModel:
    """A model that serves role `name` in demo `shop`."""
    claim = f"berth/dev/shop.{name}/{on}"
    owner = f"berth/dev/shop: {name} ({name} on {on})"
    made = JudgedModel(
        name=claim,
        owner="berth/dev/shop",
        demo="shop",
        model=name,
        entry=f"shop.{name}",
        host="alpha",
        instance=on,
        roles=(name,),
        claims=tuple(Claim("alpha", gpu, claim, owner, 20309) for gpu in gpus),
        config_pbtxt=CONFIG,
        engine_args={
            "model": f"/data/triton/weights/{name}",
            "dtype": "bfloat16",
            "max_model_len": 4096,
            "gpu_memory_utilization": 0.9,
            "tensor_parallel_size": len(gpus),
            "pipeline_parallel_size": 1,
            "distributed_executor_backend": "ray",
            **(args or {}),
        },
        image=IMAGE,
        weights=WEIGHTS,
    )
    return replace(made, **changed)


GOOD = Judged(
    stack="berth/dev",
    hosts={"alpha": HOST},
    instances=(
        instance("triton@0", G0, port=8000),
        instance("triton@wide", G0, G1, port=8010),
        instance("triton@2", G2, port=8002),
    ),
    models=(model("big", "triton@wide", G0, G1), model("small", "triton@2", G2)),
    plain_config={"berth:hosts.alpha.ssh.user": "berth"},
    releases=RELEASES,
)


def with_host(**changed: Any) -> Judged:
    """The stack, its host changed."""
    return replace(GOOD, hosts={"alpha": replace(HOST, **changed)})


def with_instance(name: str = "triton@0", **changed: Any) -> Judged:
    """The stack, one instance changed."""
    return replace(
        GOOD,
        instances=tuple(
            replace(each, **changed) if each.name == name else each for each in GOOD.instances
        ),
    )


def with_model(name: str = "small", **changed: Any) -> Judged:
    """The stack, one model changed; `args` are added to its engine's."""
    args = changed.pop("args", {})
    return replace(
        GOOD,
        models=tuple(
            replace(each, engine_args={**each.engine_args, **args}, **changed)
            if each.model == name
            else each
            for each in GOOD.models
        ),
    )


def with_service(name: str = "berth-adapter", **changed: Any) -> Judged:
    """The good stack with a gateway and an adapter, one of them changed."""
    services = (
        JudgedService("berth-gateway", "alpha", 8443, UNIT),
        JudgedService("berth-adapter", "alpha", 8300, UNIT, f"adapter:1@{DIGEST}"),
    )
    made = tuple(replace(each, **changed) if each.name == name else each for each in services)
    return replace(GOOD, services=made)


def refused(rule: Rule, judged: Judged) -> str:
    """What the rule says: one finding, and a certain one."""
    (finding,) = rule.findings(judged)
    assert finding.certain
    assert "Nothing was touched." in str(finding.refusal)
    assert finding.refusal.fix
    return str(finding.refusal)


def warned(rule: Rule, judged: Judged) -> str:
    """What the rule says: one finding, and an uncertain one."""
    (finding,) = rule.findings(judged)
    assert not finding.certain
    assert finding.refusal.fix
    return str(finding.refusal)


def certain(findings: list[Finding]) -> list[str]:
    """What is refused."""
    return [str(finding.refusal) for finding in findings if finding.certain]
