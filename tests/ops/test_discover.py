"""`berth discover`: which host is meant, and what is new there."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.gpu_map import gpu_map, of_host
from models.inventory import Inventory
from models.refusal import Refusal
from ops.discover import changes, declared
from tests.declarations import G0, SECTIONS
from tests.models.test_inventory import CLAIM, HOST
from tests.models.test_readiness import GOOD

PROCESS = {"gpu": G0, "pid": 41, "name": "python3", "mib": 9000}


def project(folder: Path, **stacks: dict[str, Any]) -> Path:
    for name, sections in stacks.items():
        config = {f"berth:{key}": value for key, value in sections.items()}
        (folder / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump({"config": config}))
    return folder


def moved() -> dict[str, Any]:
    sections = copy.deepcopy(SECTIONS)
    sections["hosts"]["alpha"]["ssh"]["address"] = "elsewhere.test"
    return sections


def inventory(**changed: Any) -> Inventory:
    return Inventory.model_validate(GOOD | changed)


def news(**changed: Any) -> list[str]:
    return list(changes(inventory(), inventory(**changed)))


def test_a_host_is_found_in_whichever_stack_declares_it(tmp_path: Path) -> None:
    demo = {"host_stack": "base", "demo": SECTIONS["demo"]}
    here = project(tmp_path, base=SECTIONS, shop=demo, twin=SECTIONS)
    assert declared(here, "beta", None).ssh.address == "beta.test"


def test_a_host_that_stacks_declare_differently_is_asked_back(tmp_path: Path) -> None:
    here = project(tmp_path, base=SECTIONS, other=moved())
    with pytest.raises(Refusal) as refused:
        declared(here, "alpha", None)
    assert "declared differently by stacks base, other" in str(refused.value)
    assert "berth discover alpha --stack base" in str(refused.value)
    assert declared(here, "alpha", "other").ssh.address == "elsewhere.test"


def test_a_host_that_no_stack_declares_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        declared(project(tmp_path, base=SECTIONS), "gamma", None)
    assert "no host `gamma` in any stack" in str(refused.value)
    assert "alpha, beta" in str(refused.value)


def test_a_broken_stack_is_passed_over_unless_the_host_is_in_no_other(tmp_path: Path) -> None:
    here = project(tmp_path, base=SECTIONS, broken={"hots": {}})
    assert declared(here, "alpha", None)
    with pytest.raises(Refusal, match="hots"):
        declared(here, "gamma", None)


def test_an_unchanged_host_has_no_news_however_much_later() -> None:
    assert news(taken_at="2026-05-05T00:00:00Z") == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"driver": "580.1"}, ["driver:  → 580.1"]),
        (
            {"claims": [CLAIM]},
            [f"new: claim {CLAIM['name']} (berth/dev/shop: sentry since 2026-01-01T00:00:00Z)"],
        ),
        (
            {"processes": [PROCESS]},
            [f"new: process 41 (python3, 9000 MiB on {G0}, not Berth's)"],
        ),
        ({"ports": [22, 8000]}, ["new: port 8000 (something listens)"]),
        ({"units": {"triton@0.service": "failed"}}, ["new: unit triton@0.service (failed)"]),
        ({"weights": {"small": {"files": 1}}}, ["gone: weights big-nvfp4 (1 files, 0 MiB)"]),
        ({"docker": GOOD["docker"] | {"version": "29.1"}}, ["docker version: 28.2.2 → 29.1"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_new_is_told_by_name(changed: dict[str, Any], says: list[str]) -> None:
    assert news(**changed) == says


def test_a_claim_that_changed_tells_only_what_is_another() -> None:
    more = CLAIM | {"gpus": [{"uuid": G0, "mib": 9500}]}
    told = list(changes(inventory(claims=[CLAIM]), inventory(claims=[more])))
    assert told == [f"claim {CLAIM['name']} gpus[0].mib: 9000 → 9500"]


def test_the_map_shows_claims_and_strangers_of_a_host_without_any_plan() -> None:
    text = gpu_map(of_host("alpha", HOST, inventory(claims=[CLAIM], processes=[PROCESS])))
    assert "berth/dev/shop: sentry" in text
    assert "python3 (pid 41)" in text
    assert "this plan" not in text
