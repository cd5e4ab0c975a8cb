"""Each policy refuses its own wrong thing in what the engine shows, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, StackValidationPolicy

from components.resources.judged import of_plan
from config.project import load_plan
from models.judged import Judged, JudgedHost
from models.judging import RULES
from models.overlap import Claim
from policy import containers, loads
from policy.readable import readable
from policy.stack_policy import stack_policy
from tests.models.rules.plans import DIGEST, RELEASES
from tests.policy.conftest import inventory
from tests.policy.showing import all_of, known, violations
from tests.resources.recording import Recorder
from tests.resources.test_stack import declared

POLICIES: dict[str, StackValidationPolicy] = {rule.NAME: stack_policy(rule) for rule in RULES}
UNKNOWN = "GPU-00000000-0000-0000-0000-00000000000f"


class Shown:
    """The shipped `dev` stack, as resources that a test may change."""

    def __init__(self, project: Path) -> None:
        plan = load_plan(project, "dev")
        judged = of_plan(plan, inventory(plan), RELEASES, {})
        alone = replace(judged.hosts["sandbox"], others=(), others_roles={}, others_demos={})
        self.judged: Judged = replace(judged, hosts={"sandbox": alone})
        self.recorder: Recorder
        self.recorder, _ = declared(plan, project)

    def inputs(self, kind: str, name: str) -> dict[str, Any]:
        """What a resource was declared with."""
        return self.recorder.of_type(kind)[name]

    def container(self, name: str) -> dict[str, Any]:
        return self.inputs(containers.CONTAINER, name)

    def host(self, **changed: Any) -> None:
        host: JudgedHost = replace(self.judged.hosts["sandbox"], **changed)
        self.judged = replace(self.judged, hosts={"sandbox": host})

    def model_json(self, model: str, **changed: Any) -> None:
        files = self.inputs(loads.ENTRY, f"sandbox/reference.{model}")["files"]
        files[loads.ARGS] = json.dumps({**json.loads(files[loads.ARGS]), **changed})

    def refused_by(self) -> dict[str, list[str]]:
        """Policy → what it reports."""
        resources = [known(self.judged), *all_of(self.recorder)]
        said = {name: violations(each, *resources) for name, each in POLICIES.items()}
        said["readable"] = violations(readable, *resources)
        return {name: messages for name, messages in said.items() if messages}


def another_stacks_claim(shown: Shown) -> None:
    gpu = shown.judged.hosts["sandbox"].gpus[2].uuid
    shown.host(others=(Claim("sandbox", gpu, "x", "berth/lab/toys: guard (tiny)", 9000),))


def an_old_release(shown: Shown) -> None:
    for image in shown.recorder.of_type(containers.IMAGE).values():
        image["name"] = f"nvcr.io/nvidia/tritonserver:26.03-vllm-python-py3@{DIGEST}"
    models = tuple(
        replace(
            each,
            weights=each.weights.model_copy(
                update={"config": each.weights.config | {"model_type": "gemma4"}}
            ),
        )
        for each in shown.judged.models
        if each.weights
    )
    shown.judged = replace(shown.judged, models=models)


def a_tensorrt_llm_image(shown: Shown) -> None:
    for image in shown.recorder.of_type(containers.IMAGE).values():
        image["name"] = f"nvcr.io/nvidia/tritonserver:26.06-trtllm-python-py3@{DIGEST}"


def kind_gpu(shown: Shown) -> None:
    files = shown.inputs(loads.ENTRY, "sandbox/reference.gemma-4-e4b-it")["files"]
    files[loads.CONFIG] = files[loads.CONFIG].replace("KIND_MODEL", "KIND_GPU")


def writable_weights(shown: Shown) -> None:
    for mount in shown.container("triton-0")["mounts"]:
        if mount["target"].endswith("/weights"):
            mount["readOnly"] = False


def restarted_for_ever(shown: Shown) -> None:
    setup = shown.inputs(containers.COMMAND, "setup-sandbox")
    setup["stdin"] = setup["stdin"].replace("StartLimitBurst=10", "StartLimitBurst=0")


WRONG: dict[str, tuple[Callable[[Shown], Any], str]] = {
    "gpu-overlap": (another_stacks_claim, "and by berth/lab/toys: guard (tiny): 9000 MiB"),
    "memory-fit": (
        lambda shown: shown.model_json("gemma-4-e4b-it", max_model_len=10_000_000),
        "set max_model_len to ",
    ),
    "gpu-exists": (
        lambda shown: shown.container("triton-0")["deviceRequests"][0].update(deviceIds=[UNKNOWN]),
        f"no host has {UNKNOWN}",
    ),
    "one-engine": (kind_gpu, "KIND_GPU: one engine for each of 1 GPU(s)"),
    "ray-executor": (
        lambda shown: shown.model_json(
            "gemma-4-31b-it-nvfp4", distributed_executor_backend="mp"
        ),
        "spans 2 GPUs with the `mp` executor",
    ),
    "parallelism": (
        lambda shown: shown.model_json("gemma-4-31b-it-nvfp4", tensor_parallel_size=1),
        "= 1 GPU(s), triton@wide-01 has 2",
    ),
    "release-trains": (an_old_release, "first that can: Triton 26.06 (vLLM 0.22.1)"),
    "engine-image": (
        a_tensorrt_llm_image,
        "holds TensorRT-LLM 1.2.1 and no vLLM",
    ),
    "image-digests": (
        lambda shown: shown.host(image_references="digest"),
        "image `berth-sandbox/tritonserver:2.51.0-vllm` is not named by its digest",
    ),
    "closed-ports": (
        lambda shown: shown.container("triton-0")["ports"][0].update(ip="0.0.0.0"),
        "triton@0 opens HTTP on 0.0.0.0:8000",
    ),
    "unique-ports": (
        lambda shown: shown.container("triton-0")["ports"][0].update(external=8001),
        "port 8001 of host `sandbox` is used twice",
    ),
    "unique-names": (
        lambda shown: shown.host(others_roles={"sentry": "berth/lab/toys: sentry"}),
        "role `sentry` on host `sandbox` is claimed by",
    ),
    "no-plain-secrets": (
        lambda shown: shown.container("triton-0").update(envs=["HF_TOKEN=opensesame"]),
        "berth:instances.triton@0.environment.HF_TOKEN",
    ),
    "read-only-weights": (writable_weights, "triton@0 may write /data/triton/weights"),
    "restart-limits": (restarted_for_ever, "StartLimitBurst=0 means no limit"),
}  # fmt: skip


@pytest.fixture
def shown(project: Path) -> Shown:
    return Shown(project)


def test_the_shipped_stack_passes_all_policies(shown: Shown) -> None:
    assert shown.refused_by() == {}


@pytest.mark.parametrize("name", POLICIES)
def test_each_policy_refuses_its_own_wrong_thing_and_no_other(name: str, shown: Shown) -> None:
    change, says = WRONG[name]
    change(shown)
    refused = shown.refused_by()
    assert list(refused) == [name], refused
    assert says in "\n".join(refused[name])
    assert all("Fix: " in message for message in refused[name])
    assert "opensesame" not in str(refused)


@pytest.mark.parametrize("name", [*POLICIES, "readable"])
def test_each_policy_is_mandatory_and_says_how_to_mend(name: str) -> None:
    policy = POLICIES.get(name, readable)
    assert policy.name == name
    assert policy.enforcement_level is EnforcementLevel.MANDATORY
    assert policy.description
    assert policy.remediation_steps


def test_each_file_of_rules_is_asked() -> None:
    files = (Path(__file__).parents[2] / "models/rules").glob("[a-z]*.py")
    assert {file.stem.replace("_", "-") for file in files} == set(POLICIES)
