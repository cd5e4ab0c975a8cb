"""An image that a host builds is judged by what it says that it holds."""

from __future__ import annotations

import pytest

from models.build import BuiltImage
from models.releases.builds import built_findings, differences, with_builds
from models.releases.held import held_by
from models.releases.packed import packed, unpacked
from models.releases.tables import Releases

BASE = "berth-sandbox/vllm-openai:0.32.0"
REFERENCE = "berth-build/newer:0a0a0a0a0a0a"
HELD = {"vllm": "0.32.0", "transformers": "5.17.0", "torch": "2.13.0"}


def build(found: dict[str, str] | None, **declared: str) -> BuiltImage:
    return BuiltImage("newer", REFERENCE, (BASE,), declared, found)


def certain(
    releases: Releases, built: BuiltImage, driver: str = "580.95.05", **models: str
) -> list[str]:
    found = built_findings(built, models, driver, releases, host="alpha")
    return [str(each.refusal) for each in found if each.certain]


def test_before_it_is_built_it_holds_what_is_declared(releases: Releases) -> None:
    held = held_by(REFERENCE, with_builds(releases, [build(None, vllm="0.32.0")]))
    assert held is not None
    assert (held.engine, held.vllm, held.transformers, held.ray) == ("vllm", "0.32.0", None, None)


def test_what_nobody_declared_is_not_taken_from_its_base(releases: Releases) -> None:
    assert held_by(REFERENCE, with_builds(releases, [build(None)])) is None


def test_once_it_is_built_it_holds_what_it_says_and_cuda_as_its_base(releases: Releases) -> None:
    held = held_by(REFERENCE, with_builds(releases, [build(HELD, vllm="0.31.0")]))
    assert held is not None
    assert (held.vllm, held.transformers, held.ray, held.cuda) == (
        "0.32.0", "5.17.0", "no", "none",
    )  # fmt: skip


def test_what_it_says_goes_before_what_was_declared_in_tables_too(releases: Releases) -> None:
    tables = with_builds(releases, [build(None, vllm="0.31.0")])
    held = held_by(REFERENCE, with_builds(tables, [build(HELD)]))
    assert held is not None
    assert held.vllm == "0.32.0"


def test_a_version_that_is_none_is_unknown_and_no_crash(releases: Releases) -> None:
    odd = build({"vllm": "dev", "transformers": "5.17.0", "cuda": "13.0-devel"})
    held = held_by(REFERENCE, with_builds(releases, [odd]))
    assert held is not None
    assert (held.vllm, held.transformers, held.cuda) == (None, "5.17.0", "none")


def test_one_that_runs_its_model_passes(releases: Releases) -> None:
    assert certain(releases, build(HELD, vllm="0.32"), small="gemma4") == []


def test_one_with_a_transformers_that_does_not_know_the_model_is_refused(
    releases: Releases,
) -> None:
    old = build(HELD | {"transformers": "4.57.0"})
    (said,) = certain(releases, old, small="gemma4")
    assert "berth:builds.newer: " in said
    assert "transformers 4.57.0; small is gemma4, which needs transformers" in said


def test_one_without_an_engine_is_refused_only_where_it_is_to_run_a_model(
    releases: Releases,
) -> None:
    (said,) = certain(releases, build({"torch": "2.13.0"}), small="gemma4")
    assert "it holds neither vLLM nor TensorRT-LLM, and is to run small" in said
    assert certain(releases, build({})) == []


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"vllm": "0.31.0"}, "vllm 0.31.0 is declared, and the image holds vllm 0.32.0"),
        ({"tensorrt_llm": "1.2.1"}, "the image holds no tensorrt_llm"),
    ],
)
def test_one_that_holds_something_else_than_declared_is_refused(
    declared: dict[str, str], said: str
) -> None:
    (finding,) = differences(build(HELD, **declared))
    assert finding.certain
    assert said in str(finding.refusal)


def test_one_whose_cuda_is_too_new_for_the_driver_is_refused(releases: Releases) -> None:
    (said,) = certain(releases, build(HELD | {"cuda": "13.0"}), "525.60.13", small="gemma4")
    assert "holds CUDA 13.0, which needs driver 580 or newer" in said


def test_tables_survive_their_way_to_whom_judges(releases: Releases) -> None:
    back = unpacked(packed(releases))
    assert back.images == releases.images
    assert back.architectures == releases.architectures
    assert back.cuda == releases.cuda
    assert len(packed(releases)) < 10_000
