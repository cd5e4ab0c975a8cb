"""Fifteen plans that cannot work, one a rule: each refused at preview, and passed once mended.

The refusals are the program's own: plain `pulumi preview`, without the policy pack. What the pack
says of the same on its own is in tests/policy/test_pack.py.
"""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from components.renderers import berth_host
from models.judging import RULES
from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace, only, reference

STACK = "wrong"
OWNER = "berth/wrong/reference"
DIGEST = "@sha256:" + "0a" * 32
NVIDIA = "nvcr.io/nvidia/tritonserver:{}-vllm-python-py3" + DIGEST
TRTLLM = "nvcr.io/nvidia/tritonserver:26.06-{}-python-py3" + DIGEST
SANDBOX = "berth-sandbox/tritonserver:2.51.0-vllm"
UNKNOWN = "GPU-00000000-0000-0000-0000-00000000000f"
ENGINE = 'backend: "vllm"\ninstance_group [ {{ count: 1, kind: {} }} ]\n'
PROGRAM = "/usr/local/sbin/berth-host-of-a-test"


class Draft:
    """A stack that would come up, for a test to spoil and to mend."""

    def __init__(self, workspace: Workspace, sections: dict[str, Any]) -> None:
        self.workspace = workspace
        self.sections = sections
        self.model("gemma-4-e4b-it")

    def role(self, **changed: str) -> None:
        self.sections["demo"]["roles"]["guard"].update(changed)

    def instance(self, name: str = "triton@0", **changed: Any) -> None:
        self.sections["instances"][name].update(changed)

    def host(self, **changed: Any) -> None:
        self.sections["hosts"]["sandbox"].update(changed)

    def model(self, name: str, on: str = "triton@0", **changed: Any) -> None:
        """Let the role ask for a model, its catalog entry changed."""
        self.workspace.restore_model(name)
        if changed:
            self.workspace.change_model(name, **changed)
        self.role(model=name, instance=on)

    def image(self, image: str) -> None:
        for instance in self.sections["instances"].values():
            instance["image"] = image

    def preview(self) -> tuple[int, str]:
        self.workspace.write_stack(STACK, self.sections)
        return self.workspace.pulumi("preview", "--stack", STACK)


Change = Callable[[Draft], Any]


@dataclass(frozen=True)
class Wrong:
    """A plan that cannot work."""

    rule: str
    spoil: Change
    says: tuple[str, ...]
    """Among it who it is about, and the numbers."""
    fix: str
    """A pattern of the advice; its groups are what `mend` is given."""
    mend: Callable[..., Any]
    claimed: tuple[str, int] | None = None
    """(role, GPU) that another stack's demo holds on the host meanwhile."""


def on_an_image_of_vllms(draft: Draft) -> None:
    """TensorRT-LLM asked of it."""
    draft.image(NVIDIA.format("26.06"))
    draft.role(engine="triton-llmapi")


WIDE = "triton@wide-01"
NVFP4 = "gemma-4-31b-it-nvfp4"

PLANS = [
    Wrong(
        "gpu-overlap",
        lambda draft: draft.role(instance="triton@2"),
        (
            "GPU 2 (GPU-9c27ec24-32aa-55c7-a190-f24240092f66) is claimed by",
            f"{OWNER}: guard (gemma-4-e4b-it on triton@2): 20309 MiB",
            "berth/lab/toys: keeper",
            "9000 MiB",
        ),
        r"set `instance: (triton@\d)` \(GPU \d\) for role guard",
        lambda draft, instance: draft.role(instance=instance),
        claimed=("keeper", 2),
    ),
    Wrong(
        "memory-fit",
        lambda draft: draft.model("gemma-4-31b-it", WIDE, tensor_parallel_size=2),
        (
            f"gemma-4-31b-it does not fit on {WIDE} ({OWNER}: guard)",
            "of 20308 MiB (0.9 × 22565)",
            "MiB too much",
        ),
        r"set `model: (gemma-4-31b-it-nvfp4)` for role guard",
        lambda draft, model: draft.model(model, WIDE),
    ),
    Wrong(
        "gpu-exists",
        lambda draft: draft.sections["hosts"]["sandbox"]["gpus"].append(
            {"uuid": UNKNOWN, "index": 7, "memory_mib": 23034}
        ),
        (f"host sandbox: GPU 7 ({UNKNOWN}) is not there",),
        r"`nvidia-smi -L` there lists 0: GPU-",
        lambda draft: draft.sections["hosts"]["sandbox"]["gpus"].pop(),
    ),
    Wrong(
        "one-engine",
        lambda draft: draft.model(NVFP4, WIDE, config_pbtxt=ENGINE.format("KIND_GPU")),
        (f"{NVFP4} on {WIDE}: its instance group is KIND_GPU: one engine for each of 2 GPU(s)",),
        r"write `instance_group \[ { count: 1, kind: (KIND_MODEL) } \]`",
        lambda draft, kind: draft.model(NVFP4, WIDE, config_pbtxt=ENGINE.format(kind)),
    ),
    Wrong(
        "ray-executor",
        lambda draft: draft.model(NVFP4, WIDE, executor="mp"),
        (f"{NVFP4} spans 2 GPUs with the `mp` executor",),
        r"set `executor: (ray)` in catalog/gemma-4-31b-it-nvfp4.yaml",
        lambda draft, executor: draft.model(NVFP4, WIDE, executor=executor),
    ),
    Wrong(
        "parallelism",
        lambda draft: draft.model(NVFP4, "triton@0"),
        (f"{NVFP4} wants 2 × 1 (tensor × pipeline) = 2 GPU(s), triton@0 has 1",),
        r"an instance with 2: (triton@wide-01)",
        lambda draft, instance: draft.role(instance=instance),
    ),
    Wrong(
        "release-trains",
        lambda draft: draft.image(NVIDIA.format("26.03")),
        ("Triton 26.03 holds vLLM 0.17.1", "gemma-4-e4b-it is gemma4, which needs"),
        r"first that can: Triton (\d\d\.\d\d) ",
        lambda draft, month: draft.image(NVIDIA.format(month)),
    ),
    Wrong(
        "engine-image",
        on_an_image_of_vllms,
        (
            "`triton-llmapi` of guard runs on TensorRT-LLM; Triton 26.06",
            "holds vLLM 0.22.1 and no TensorRT-LLM",
        ),
        r"give triton@0 an image `tritonserver:YY.MM-(trtllm)-python-py3`",
        lambda draft, kind: draft.image(TRTLLM.format(kind)),
    ),
    Wrong(
        "image-digests",
        lambda draft: draft.host(image_references="digest"),
        (f"image `{SANDBOX}` is not named by its digest",),
        r"write `repository:tag@sha256:…`",
        lambda draft: draft.image(SANDBOX + DIGEST),
    ),
    Wrong(
        "closed-ports",
        lambda draft: draft.instance(listen="0.0.0.0"),
        ("triton@0 opens HTTP on 0.0.0.0:8000, and only `control` APIs ask for the key",),
        r"set `keyed_apis: (all)`",
        lambda draft, keyed: draft.instance(keyed_apis=keyed),
    ),
    Wrong(
        "unique-ports",
        lambda draft: draft.instance(http_port=8001),
        ("port 8001 of host `sandbox` is used twice", "berth:instances.triton@0.http_port"),
        r"(\d+) is free",
        lambda draft, port: draft.instance(http_port=int(port)),
    ),
    Wrong(
        "unique-names",
        lambda _: None,
        (f"role `guard` on host `sandbox` is claimed by {OWNER}", "and by berth/lab/toys: guard"),
        r"such as `([a-z-]+)`",
        lambda draft, name: draft.sections["demo"].update(
            roles={name: draft.sections["demo"]["roles"]["guard"]}
        ),
        claimed=("guard", 3),
    ),
    Wrong(
        "no-plain-secrets",
        lambda draft: draft.instance(environment={"HF_TOKEN": "opensesame"}),
        ("berth:instances.triton@0.environment.HF_TOKEN: `HF_TOKEN` holds a value in clear",),
        r"name the file, as in `(HF_TOKEN_FILE)`",
        lambda draft, name: draft.instance(environment={name: "/run/token"}),
    ),
    Wrong(
        "read-only-weights",
        lambda draft: draft.instance(
            mounts=[{"source": "/data/triton", "target": "/everything", "read_only": False}]
        ),
        ("triton@0 may write /data/triton/weights and /data/triton/models",),
        r"set `read_only: true`",
        lambda draft: draft.instance(mounts=[{"source": "/data/triton", "target": "/everything"}]),
    ),
    Wrong(
        "restart-limits",
        lambda draft: draft.host(restart={"delay_s": 30, "burst": 10, "within_s": 300}),
        ("10 starts 30 s apart take 300 s, and only those within 300 s are counted",),
        r"delay_s: (\d+), burst: (\d+), within_s: (\d+)",
        lambda draft, *numbers: draft.host(
            restart=dict(zip(("delay_s", "burst", "within_s"), map(int, numbers), strict=True))
        ),
    ),
]


@pytest.fixture(scope="module", autouse=True)
def stack(workspace: Workspace, host: TestHost) -> Iterator[None]:
    """A stack that has no state, and berth-host as a host stack would install it."""
    workspace.init(STACK)
    packed = base64.b64encode(berth_host.build()).decode()
    host.sh(f"base64 -d > {PROGRAM} <<'END'\n{packed}\nEND\nchmod 755 {PROGRAM}")
    yield
    host.sh(f"rm -rf {PROGRAM} /var/lib/berth")


@pytest.fixture
def claimed(host: TestHost) -> Iterator[Callable[[str, int], None]]:
    """Claims a GPU for another stack's demo until the test ends."""
    holder = "berth/lab/toys"
    gpus = host.description["gpus"]

    def ask(records: list[dict[str, Any]]) -> None:
        asked = json.dumps({"host": "sandbox", "holder": holder, "claims": records})
        answer = json.loads(host.sh(f"{PROGRAM} claim <<'END'\n{asked}\nEND"))
        assert "refused" not in answer, answer

    def claim(role: str, index: int) -> None:
        uuid = next(gpu["uuid"] for gpu in gpus if gpu["index"] == index)
        ask(
            [
                {
                    "name": f"{holder}.tiny/triton@9",
                    "owner": holder,
                    "stack": "berth/lab",
                    "demo": "toys",
                    "roles": [role],
                    "gpus": [{"uuid": uuid, "mib": 9000}],
                }
            ]
        )

    yield claim
    host.sh(f"{PROGRAM} release --name {holder}.tiny/triton@9 || true")


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.rule)
def test_a_plan_that_cannot_work_is_refused_and_its_fix_passes(
    plan: Wrong,
    workspace: Workspace,
    host: TestHost,
    claimed: Callable[[str, int], None],
) -> None:
    good = only(
        reference(host), "triton@0", "triton@1", "triton@2", WIDE,
        guard=("gemma-4-e4b-it", "triton@0"),
    )  # fmt: skip
    draft = Draft(workspace, copy.deepcopy(good))
    if plan.claimed:
        claimed(*plan.claimed)
    plan.spoil(draft)
    status, said = draft.preview()
    assert status != 0, said
    assert "Traceback" not in said
    flat = " ".join(said.split())
    for words in plan.says:
        assert words in flat, f"{words}\n{said}"
    assert "Nothing was touched." in said
    assert "opensesame" not in said
    advice = re.search(rf"Fix: [^\n]*{plan.fix}", said)
    assert advice, f"{plan.fix}\n{said}"
    plan.mend(draft, *advice.groups())
    status, said = draft.preview()
    assert status == 0, said


def test_there_is_one_plan_for_each_rule() -> None:
    assert sorted(plan.rule for plan in PLANS) == sorted(rule.NAME for rule in RULES)
