"""What runs the workers of a model wider than one GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.releases.executor import executor_findings
from models.releases.tables import Releases

AT = "catalog/my-model.yaml: executor"


def image(tag: str, flavour: str = "vllm") -> str:
    return f"nvcr.io/nvidia/tritonserver:{tag}-{flavour}-python-py3"


def ask(reference: str, width: int, executor: str, releases: Releases) -> list[bool]:
    found = executor_findings(reference, width, executor, releases, at=AT, model="my-model")
    return [finding.certain for finding in found]


@pytest.mark.parametrize(
    ("reference", "executor", "expected"),
    [
        (image("25.08"), "mp", [True]),
        (image("25.08"), "ray", []),
        (image("26.03"), "mp", [True]),
        (image("26.03"), "ray", []),
        (image("26.04"), "mp", [True]),
        (image("26.04"), "ray", [False]),  # vLLM 0.19.0 does not bring ray
        ("mine:1", "mp", [True]),
        ("mine:1", "ray", [False]),
        ("berth-sandbox/tritonserver:2.51.0-vllm", "ray", []),
        ("berth-sandbox/tritonserver:2.51.0-vllm", "mp", [True]),
        (image("26.03", "trtllm"), "mp", []),  # it starts its workers itself
    ],
)
def test_a_wide_model_needs_ray_and_an_image_that_has_it(
    reference: str, executor: str, expected: list[bool], releases: Releases
) -> None:
    assert ask(reference, 2, executor, releases) == expected


@pytest.mark.parametrize("executor", ["ray", "mp"])
def test_a_narrow_model_needs_neither(executor: str, releases: Releases) -> None:
    assert ask(image("26.04"), 1, executor, releases) == []


def test_a_refusal_says_where_to_set_it(releases: Releases) -> None:
    (finding,) = executor_findings(image("26.03"), 2, "mp", releases, at=AT, model="my-model")
    assert "Triton 26.03" in finding.refusal.cause
    assert finding.refusal.fix == "set `executor: ray` in catalog/my-model.yaml."


def test_whether_an_image_has_ray_is_asked_of_the_image(releases: Releases) -> None:
    (finding,) = executor_findings(image("26.04"), 2, "ray", releases, at=AT, model="my-model")
    assert f"docker run --rm --entrypoint python3 {image('26.04')}" in finding.refusal.fix


@pytest.mark.parametrize(
    ("column", "said", "executor", "expected"),
    [
        ("ray", "yes", "ray", []),
        ("ray", "no", "ray", [True]),
        ("without_ray", "yes", "mp", []),
        ("without_ray", "no", "mp", [True]),
    ],
)
def test_what_the_row_says_settles_it(
    column: str, said: str, executor: str, expected: list[bool], releases: Releases
) -> None:
    rows = [
        row.model_copy(update={column: said}) if row.tag == "26.04" else row
        for row in releases.triton
    ]
    told = replace(releases, triton=tuple(rows))
    assert ask(image("26.04"), 2, executor, told) == expected


@given(st.text(), st.integers(), st.text())
def test_any_values_are_answered(
    releases: Releases, reference: str, width: int, executor: str
) -> None:
    assert len(ask(reference, width, executor, releases)) == (width > 1)
