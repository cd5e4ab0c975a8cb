"""A host that cannot carry the plan is refused before anything is touched, with a way out."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from models.inventory import Inventory
from models.readiness import judge, missing_weights
from tests.declarations import G0, G1, SECTIONS, changed, plan_of

GOOD: dict[str, Any] = {
    "taken_at": "2026-01-01T00:00:00Z",
    "systemd": True,
    "gpus": {
        "status": 0,
        "said": "",
        "found": [
            {
                "uuid": uuid,
                "index": index,
                "name": "NVIDIA L4",
                "memory_mib": 23034,
                "reserved_mib": 468,
                "used_mib": 0,
            }
            for index, uuid in enumerate((G0, G1))
        ],
    },
    "processes": [],
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
    "weights": {"big-nvfp4": {"files": 1}, "small": {"files": 1}},
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
    return "\n".join(str(r) for r in judge(plan, "alpha", Inventory.model_validate(known)))


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
    ],
)
def test_what_is_missing_is_named_with_how_to_get_it(facts: dict[str, Any], says: str) -> None:
    text = judged(**facts)
    assert says in text
    assert "Fix: " in text
    assert "Nothing was touched." in text


def test_a_gpu_of_another_size_than_declared_is_named() -> None:
    assert "has 23034 MiB, declared are 24000" in judged(
        changed("hosts/alpha/gpus/0/memory_mib", 24000)
    )


def test_the_hook_is_asked_for_only_where_it_is_used() -> None:
    hook = changed("hosts/alpha/gpu_access", "hook")
    assert judged(hook, docker__cdi=False, docker__version="20.10.24") == ""
    assert "nvidia-container-toolkit" in judged(hook, docker__hook=False)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({"small": {}}, "no weights at /data/triton/weights/big-nvfp4"),
        ({"big-nvfp4": {"trouble": ["no config.json"]}}, "big-nvfp4 cannot be used: no config"),
        ({"big-nvfp4": {"trouble": ["a", "b", "c"]}}, "cannot be used: a (and 2 more)"),
    ],
)
def test_missing_weights_are_told_but_stop_no_other_model(
    weights: dict[str, Any], says: str
) -> None:
    assert judged(weights=weights) == ""
    found = Inventory.model_validate(GOOD | {"weights": weights})
    (told,) = missing_weights(plan_of(SECTIONS), "alpha", found)
    assert says in str(told)
    assert "other models can" in str(told)


def test_a_host_whose_ledger_cannot_be_read_is_refused() -> None:
    text = judged(ledger_trouble="/var/lib/berth/ledger.db is not a ledger that can be read")
    assert "host alpha: its ledger cannot be read: /var/lib/berth/ledger.db is not" in text
    assert "Who holds which GPU there is not known." in text
    assert "docs/recovery.md" in text
