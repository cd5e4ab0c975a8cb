"""What the policy pack is told of a stack beside its resources."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime.settings import get_root_resource

from components.resources.judged import of_plan
from components.resources.known import Known
from components.resources.stack import compose
from models import known
from models.refusal import Refusal
from tests.declarations import plan_of
from tests.models.rules.plans import RELEASES
from tests.resources.recording import Recorder
from tests.resources.test_stack import with_key_files


class Late(pulumi.ComponentResource):
    def __init__(self) -> None:
        super().__init__("test:late:Late", "late")


def test_it_lists_all_that_is_declared_and_nothing_may_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs: dict[str, Any] = {}
    monkeypatch.setattr(Known, "register_outputs", lambda _self, those: outputs.update(those))
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, project="berth", stack="test", preview=False)
    # All tests have one stack.
    monkeypatch.setattr(get_root_resource(), "_transformations", None)
    plan = plan_of(with_key_files(tmp_path))

    @pulumi.runtime.test  # type: ignore[untyped-decorator]  # The SDK leaves it untyped.
    def program() -> None:
        facts = Known(of_plan(plan, {}, RELEASES, {}))
        compose(plan, tmp_path)
        facts.complete()
        with pytest.raises(Refusal, match="declared too late"):
            Late()

    program()
    made = {f"{each.typ}::{each.name}" for each in recorder.resources}
    assert known.read(outputs["known"]).declared == frozenset(
        made - {"pulumi:pulumi:Stack::berth-test"}
    )
