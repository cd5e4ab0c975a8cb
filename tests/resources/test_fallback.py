"""What a stack declares of a role with a fallback, and says of who answers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pulumi
import pytest

from models.plan import Plan
from policy.loads import CLAIMS, ENTRY, MODEL, SERVED
from tests.declarations import SECTIONS, plan_of
from tests.resources import test_stack
from tests.resources.recording import Recorder

SMALL = {"model": "small", "instance": "triton@0"}
ROUTE = "pulumi-python:dynamic/berth:RoleRoute"
FIRST, SECOND = "berth/test/shop.big/triton@wide-01", "berth/test/shop.small/triton@0"


def planned(
    tmp_path: Path, engine: str | None = None, gateway: dict[str, Any] | None = None
) -> Plan:
    sections = copy.deepcopy(test_stack.with_key_files(tmp_path) | {"demo": SECTIONS["demo"]})
    for role in ("architect", "worker"):
        sections["demo"]["roles"][role]["fallback"] = SMALL
        sections["demo"]["roles"][role] |= {"engine": engine} if engine else {}
    del sections["demo"]["roles"]["sentry"]
    sections["hosts"]["alpha"] |= {"gateway": gateway} if gateway else {}
    return plan_of(sections | {"images": {"vllm": "vllm@sha256:bb"}})


class Failing(Recorder):
    """The first model fails; what is declared after it knows."""

    def new_resource(
        self, args: pulumi.runtime.MockResourceArgs
    ) -> tuple[str | None, dict[Any, Any]]:
        id_, outputs = super().new_resource(args)
        if args.typ in (MODEL, SERVED) and args.inputs.get("fallback"):
            outputs |= {"state": "FAILED", "reason": "it does not answer", "attempt": "t1"}
        return id_, outputs


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Recorder, dict[str, Any]]:
    monkeypatch.setattr(test_stack, "Recorder", Failing)
    return test_stack.declared(planned(tmp_path), tmp_path)


def test_both_are_claimed_and_written_from_the_beginning(tmp_path: Path) -> None:
    recorder, _ = test_stack.declared(planned(tmp_path), tmp_path)
    claims = {
        each["name"]: each["instead_of"] for each in recorder.of_type(CLAIMS)["alpha"]["claims"]
    }
    assert claims == {FIRST: "", SECOND: FIRST}
    assert sorted(recorder.of_type(ENTRY)) == ["alpha/shop.big", "alpha/shop.small"]


def test_the_first_knows_the_claim_that_it_has_to_take_its_gpus_back_from(tmp_path: Path) -> None:
    recorder, _ = test_stack.declared(planned(tmp_path), tmp_path)
    models = recorder.of_type(MODEL)
    assert models["shop.big/triton@wide-01"]["fallback"]["name"] == SECOND
    assert models["shop.small/triton@0"].get("fallback") is None
    assert models["shop.big/triton@wide-01"]["wanted"] == "always"


def test_the_fallback_is_wanted_since_the_firsts_last_attempt(
    failing: tuple[Recorder, dict[str, Any]],
) -> None:
    assert failing[0].of_type(MODEL)["shop.small/triton@0"]["wanted"] == "t1"


def test_the_fallback_knows_the_routes_that_its_roles_go_back_to(tmp_path: Path) -> None:
    gateway = {"adapter": {"image": "adapter@sha256:aa"}}
    recorder, _ = test_stack.declared(planned(tmp_path, gateway=gateway), tmp_path)
    models = recorder.of_type(MODEL)
    assert models["shop.big/triton@wide-01"].get("gives_back") is None
    given = {each["role"]: each for each in models["shop.small/triton@0"]["gives_back"]}
    assert sorted(given) == ["architect", "worker"]
    for role, its in given.items():
        own = recorder.of_type(ROUTE)[f"alpha/shop/{role}"]
        about = ("demo", "role", "route", "adapter", "key_files")
        assert its == {name: own[name] for name in about}


def test_the_outputs_say_who_answers_and_why(failing: tuple[Recorder, dict[str, Any]]) -> None:
    role = failing[1]["roles"]["architect"]
    assert (role["serving"], role["fallback"], role["state"]) == ("small", "small", "FAILED")
    assert role["reason"] == "it does not answer"


def test_a_run_warns_of_each_role_that_is_not_on_its_own_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", warned.append)
    monkeypatch.setattr(test_stack, "Recorder", Failing)
    test_stack.declared(planned(tmp_path), tmp_path)
    assert sorted(warned) == [
        f"{role}: fallback small serves instead of big: it does not answer"
        for role in ("architect", "worker")
    ]


def test_a_server_is_started_by_its_model_alone_once_the_gpus_are_free(
    tmp_path: Path,
) -> None:
    recorder, _ = test_stack.declared(planned(tmp_path, "vllm"), tmp_path)
    assert recorder.of_type(SERVED)["shop-architect"]["fallback"]["name"] == SECOND
    served = recorder.of_type(SERVED)["shop-architect"]
    assert "shop-architect.env" in served["prepare"]
    for script in recorder.of_type("command:remote:Command").values():
        assert "restart shop-architect" not in str(script.get("stdin"))
