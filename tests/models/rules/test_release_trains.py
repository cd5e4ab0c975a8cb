"""Images know their models, and hosts can run the images."""

from __future__ import annotations

from dataclasses import replace

from models.build import BuiltImage
from models.releases.builds import with_builds
from models.rules import release_trains
from tests.models.rules.plans import (
    DIGEST,
    GOOD,
    WEIGHTS,
    certain,
    refused,
    warned,
    with_host,
    with_model,
)

GEMMA4 = WEIGHTS.model_copy(update={"config": WEIGHTS.config | {"model_type": "gemma4"}})
TOO_OLD = f"nvcr.io/nvidia/tritonserver:26.03-vllm-python-py3@{DIGEST}"


def test_a_model_that_its_image_knows_passes() -> None:
    assert not release_trains.findings(GOOD)


def test_gemma4_on_triton_26_03_is_refused_with_the_first_that_can() -> None:
    text = refused(release_trains, with_model(weights=GEMMA4, image=TOO_OLD))
    assert "berth:instances.triton@2.image: Triton 26.03 holds vLLM 0.17.1" in text
    assert "first that can: Triton 26.06 (vLLM 0.22.1)" in text


def test_an_image_that_no_table_knows_is_a_warning() -> None:
    assert "nothing says what the image" in warned(release_trains, with_model(image="own:1"))


def test_a_driver_too_old_for_the_image_is_refused_for_each_instance() -> None:
    found = release_trains.findings(with_host(driver="470.57.02"))
    assert [finding.certain for finding in found] == [True] * len(GOOD.instances)
    assert "driver 580 or newer" in str(found[0].refusal)


BUILT = "berth-build/newer:0a0a0a0a0a0a"


def test_a_build_that_was_never_made_is_a_warning_that_says_what_settles_it() -> None:
    text = warned(release_trains, with_model(image=BUILT))
    assert "build `newer` was not made yet" in text
    assert "before anything is stopped or loaded" in text
    assert "declare `berth:builds.newer.versions`" in text


def test_a_build_is_judged_by_what_the_host_knows_of_it() -> None:
    found = {"vllm": "0.17.1", "transformers": "4.57.0", "cuda": "13.0"}
    build = BuiltImage("newer", BUILT, (), {"transformers": "5.17.0"}, found)
    judged = with_model(image=BUILT, weights=GEMMA4)
    judged = replace(judged, builds={BUILT: build}, releases=with_builds(judged.releases, [build]))
    said = "\n".join(certain(release_trains.findings(judged)))
    assert "berth:builds.newer.versions.transformers: transformers 5.17.0 is declared" in said
    assert "small is gemma4" in said
