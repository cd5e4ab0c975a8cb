"""What is known of an image, by how it is named."""

from __future__ import annotations

import pytest

from models.releases.held import Held, held_by
from models.releases.tables import Releases

DIGEST = "@sha256:" + "a" * 64


@pytest.mark.parametrize(
    "image",
    [
        "nvcr.io/nvidia/tritonserver:26.03-vllm-python-py3",
        f"nvcr.io/nvidia/tritonserver:26.03-vllm-python-py3{DIGEST}",
        f"mirror.example:5000/nvidia/tritonserver:26.03-vllm-python-py3{DIGEST}",
        "tritonserver:26.03-vllm-python-py3",
    ],
)
def test_a_release_is_known_by_its_tag_on_any_registry(image: str, releases: Releases) -> None:
    held = held_by(image, releases)
    assert held is not None
    assert (held.name, held.triton, held.vllm) == ("Triton 26.03", "2.67.0", "0.17.1")
    assert (held.cuda, held.driver, held.ray) == ("13.2.0", "595.45.04", "yes")
    assert held.trtllm is None


def test_the_tensorrt_llm_image_of_a_release_holds_other_things(releases: Releases) -> None:
    held = held_by("nvcr.io/nvidia/tritonserver:26.03-trtllm-python-py3", releases)
    assert held is not None
    assert (held.engine, held.trtllm, held.vllm) == ("trtllm", "1.2.0", None)
    assert (held.cuda, held.driver, held.ray) == ("13.1.0", "590.44.01", None)


def test_an_own_image_is_known_by_its_row(releases: Releases) -> None:
    plain = held_by("berth-sandbox/tritonserver:2.51.0-vllm", releases)
    pushed = held_by(f"registry.example/berth-sandbox/tritonserver:2.51.0-vllm{DIGEST}", releases)
    assert plain is not None
    assert (plain.triton, plain.ray, plain.cuda) == ("2.51.0", "yes", "none")
    assert pushed == plain


@pytest.mark.parametrize(
    "image",
    [
        f"nvcr.io/nvidia/tritonserver{DIGEST}",
        "nvcr.io/nvidia/tritonserver",
        "localhost:5000/tritonserver",
        "nvcr.io/nvidia/tritonserver:19.01-vllm-python-py3",
        "nvcr.io/nvidia/tritonserver:26.03-py3",
        "nvcr.io/nvidia/tritonserver:26.03-vllm-python-py3-mine",
        "other/mytritonserver:26.03-vllm-python-py3",
        "not-berth-sandbox/tritonserver:2.51.0-vllm",
        "",
    ],
)
def test_any_other_reference_says_nothing(image: str, releases: Releases) -> None:
    assert held_by(image, releases) is None


def test_a_vllm_that_brings_no_ray_leaves_open_whether_the_image_has_it(
    releases: Releases,
) -> None:
    with_ray = held_by("tritonserver:26.03-vllm-python-py3", releases)
    open_ = held_by("tritonserver:26.04-vllm-python-py3", releases)
    assert isinstance(with_ray, Held)
    assert isinstance(open_, Held)
    assert (with_ray.ray, open_.ray) == ("yes", None)
