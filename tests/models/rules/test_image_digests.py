"""What was reviewed is what runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.build import BuiltImage
from models.rules import image_digests
from tests.models.rules.plans import DIGEST, GOOD, refused, with_host, with_instance, with_service


def test_an_image_by_digest_passes_with_or_without_a_tag() -> None:
    assert not image_digests.findings(GOOD)
    assert not image_digests.findings(with_instance(image=f"nvcr.io/nvidia/tritonserver@{DIGEST}"))


@pytest.mark.parametrize(
    "image", ["tritonserver:26.06", "tritonserver", "triton@sha256:aa", f"a b@{DIGEST}", ""]
)
def test_an_image_without_a_whole_digest_is_refused(image: str) -> None:
    text = refused(image_digests, with_instance(image=image))
    assert f"berth:instances.triton@0.image: image `{image}` is not named by its digest" in text


def test_a_host_that_builds_its_own_images_may_name_them_by_tag() -> None:
    tagged = tuple(replace(each, image="own:1") for each in GOOD.instances)
    assert not image_digests.findings(replace(with_host(image_references="tag"), instances=tagged))


def test_the_adapters_image_is_named_by_its_digest_too() -> None:
    assert not image_digests.findings(with_service())
    text = refused(image_digests, with_service(image="adapter:1"))
    assert "berth:hosts.alpha.gateway.adapter.image: image `adapter:1` is not named" in text


BUILT = "berth-build/newer:0a0a0a0a0a0a"


def test_a_build_is_as_good_as_what_it_is_built_from() -> None:
    judged = with_instance(image=BUILT)
    pinned = BuiltImage("newer", BUILT, (f"vllm/vllm-openai:v0.32.0@{DIGEST}",))
    assert not image_digests.findings(replace(judged, builds={BUILT: pinned}))
    loose = BuiltImage("newer", BUILT, (f"a:1@{DIGEST}", "python:3.12"))
    text = refused(image_digests, replace(judged, builds={BUILT: loose}))
    assert "berth:builds.newer: it is built from `python:3.12`" in text
    assert "berth-build/newer:0a0a0a0a0a0a` is not named by its digest" in refused(
        image_digests, judged
    )
