"""What is no longer declared stays while an image that was to replace it is not found good."""

from __future__ import annotations

import asyncio
from typing import Any

import pulumi
import pytest

from components.resources.refused_builds import stay_as_it_was
from tests.resources.recording import Recorder


def output(*, known: bool) -> pulumi.Output[str]:
    """A value that is known, or that of a resource that failed."""

    async def is_known() -> bool:
        return known

    async def nothing() -> Any:
        return ""

    async def secret() -> bool:
        return False

    async def resources() -> set[pulumi.Resource]:
        return set()

    ensured = asyncio.ensure_future
    return pulumi.Output(
        ensured(resources()), ensured(nothing()), ensured(is_known()), ensured(secret())
    )


def settled(*, good: bool, preview: bool = False) -> None:
    pulumi.runtime.set_mocks(Recorder(), project="berth", stack="test", preview=preview)

    async def program() -> None:
        await stay_as_it_was(
            {
                "builds": {"alpha/newer": {"versions": output(known=good)}},
                "instances": {"triton@0": {"state": output(known=True)}},
                "models": {"small": {"state": output(known=good)}},
            }
        )

    asyncio.run(program())


def test_the_program_ends_with_an_error_where_a_build_is_not_good() -> None:
    with pytest.raises(pulumi.RunError) as refused:
        settled(good=False)
    assert "no good image came of build alpha/newer" in str(refused.value)
    assert "What served goes on serving, also what this stack no longer declares" in str(
        refused.value
    )


def test_good_builds_and_previews_end_without_one() -> None:
    settled(good=True)
    settled(good=False, preview=True)
