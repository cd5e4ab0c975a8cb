"""A host that cannot carry the plan is refused before anything is touched, with a way out."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from models.readiness import HostFacts, judge, missing_weights
from tests.declarations import G0, G1, SECTIONS, changed, plan_of

GOOD: dict[str, Any] = {
    "systemd": True,
    "gpus": {
        "status": 0,
        "said": "",
        "found": [
            {"uuid": uuid, "index": str(index), "memory.total": "23034"}
            for index, uuid in enumerate((G0, G1))
        ],
    },
    "gpu_processes": [],
    "docker": {
        "installed": True,
        "version": "28.2.2",
        "said": "",
        "user_may": True,
        "hook": True,
        "cdi": True,
        "containers": [],
    },
    "ports": [22],
    "units": {},
    "weights": {"big-nvfp4": True, "small": True},
    "free_mib": 50000,
}


def judged(sections: dict[str, Any] = SECTIONS, **facts: Any) -> str:
    known = copy.deepcopy(GOOD)
    for path, value in facts.items():
        section, _, key = path.partition("__")
        if key:
            known[section][key] = value
        else:
            known[section] = value
    plan = plan_of(sections)
    return "\n".join(str(r) for r in judge(plan, "alpha", HostFacts.model_validate(known)))


def test_a_good_host_passes() -> None:
    assert judged() == ""


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"systemd": False}, "systemd does not run"),
        ({"free_mib": 3}, "3 MiB of disk free"),
        ({"docker__installed": False}, "apt-get install docker.io"),
        ({"docker__version": "", "docker__said": "no socket"}, "does not answer: no socket"),
        ({"docker__user_may": False}, "usermod -aG docker berth"),
        ({"docker__version": "19.3.1"}, "20.10 is the first"),
        ({"docker__version": "24.0.7"}, "gpu_access: hook"),
        ({"docker__cdi": False}, "nvidia-ctk cdi generate"),
        (
            {"gpus": {"status": 9, "said": "couldn't communicate", "found": []}},
            "couldn't communicate (exit status 9)",
        ),
        ({"gpus": {"status": 18, "said": "mismatch", "found": []}}, "reboot the host"),
        ({"gpus": {"status": 127, "said": "", "found": []}}, "nvidia-smi is not installed"),
        ({"ports": [8010]}, "port 8010 is in use by something that is not Berth's"),
    ],
)
def test_what_is_missing_is_named_with_how_to_get_it(facts: dict[str, Any], says: str) -> None:
    text = judged(**facts)
    assert says in text
    assert "Fix: " in text
    assert "Nothing was touched." in text


def test_a_gpu_that_is_not_there_is_named_with_those_that_are() -> None:
    text = judged(gpus={**GOOD["gpus"], "found": GOOD["gpus"]["found"][:1]})
    assert f"GPU 1 ({G1}) is not there" in text
    assert f"lists 0: {G0}" in text


def test_a_gpu_of_another_size_than_declared_is_named() -> None:
    assert "has 23034 MiB, declared are 24000" in judged(
        changed("hosts/alpha/gpus/0/memory_mib", 24000)
    )


def test_the_hook_is_asked_for_only_where_it_is_used() -> None:
    hook = changed("hosts/alpha/gpu_access", "hook")
    assert judged(hook, docker__cdi=False, docker__version="20.10.24") == ""
    assert "nvidia-container-toolkit" in judged(hook, docker__hook=False)


def test_a_port_that_one_of_our_own_instances_holds_is_not_in_the_way() -> None:
    ours = {"name": "triton-0-1", "instance": "triton@0", "state": "running"}
    ours["ports"] = "127.0.0.1:8010->8000/tcp"
    assert judged(ports=[8010], docker__containers=[ours]) == ""


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({"small": True}, "no weights at /data/triton/weights/big-nvfp4"),
        ({"big-nvfp4": False}, "big-nvfp4 has no config.json"),
    ],
)
def test_missing_weights_are_told_but_stop_no_other_model(
    weights: dict[str, bool], says: str
) -> None:
    assert judged(weights=weights) == ""
    facts = HostFacts.model_validate(GOOD | {"weights": weights})
    (told,) = missing_weights(plan_of(SECTIONS), "alpha", facts)
    assert says in str(told)
    assert "other models can" in str(told)
