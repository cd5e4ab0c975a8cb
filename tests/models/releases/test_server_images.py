"""Images of vLLM and of TensorRT-LLM are known by their tags."""

from __future__ import annotations

import pytest

from models.releases.architecture import model_findings
from models.releases.driver import driver_findings
from models.releases.held import held_by
from models.releases.tables import Releases

TRTLLM = "nvcr.io/nvidia/tensorrt-llm/release"


@pytest.mark.parametrize(
    ("image", "vllm", "cuda"),
    [
        ("vllm/vllm-openai:v0.19.1", "0.19.1", "12.9.1"),
        ("vllm/vllm-openai:v0.19.1-cu130", "0.19.1", "13.0"),
        ("docker.io/vllm/vllm-openai:v0.22.1@sha256:0a", "0.22.1", "13.0.2"),
        ("mirror.test:5000/vllm/vllm-openai:v0.22.1-cu129-ubuntu2404", "0.22.1", "12.9"),
        ("vllm/vllm-openai:v0.32.0", "0.32.0", None),
    ],
)
def test_vllms_tag_is_its_release(
    releases: Releases, image: str, vllm: str, cuda: str | None
) -> None:
    held = held_by(image, releases)
    assert held is not None
    assert (held.vllm, held.cuda, held.trtllm, held.triton) == (vllm, cuda, None, None)


def test_tensorrt_llms_tag_is_its_release(releases: Releases) -> None:
    held = held_by(f"{TRTLLM}:1.2.1", releases)
    assert held is not None
    assert (held.trtllm, held.cuda, held.transformers) == ("1.2.1", "13.1.0", "4.57.3")
    newer = held_by(f"{TRTLLM}:1.3.0rc14", releases)
    assert newer is not None
    assert (newer.trtllm, newer.cuda) == ("1.3.0rc14", None)


@pytest.mark.parametrize("image", ["vllm/vllm-openai:latest", f"{TRTLLM}:latest"])
def test_a_tag_that_says_no_release_is_a_warning_that_asks_for_one(
    releases: Releases, image: str
) -> None:
    (finding,) = model_findings(image, "llama", releases, at="", model="m")
    assert not finding.certain
    assert "name a release by its own tag" in finding.refusal.fix


def test_a_vllm_that_lacks_the_architecture_is_refused(releases: Releases) -> None:
    old = model_findings("vllm/vllm-openai:v0.18.0", "gemma4", releases, at="", model="m")
    assert [finding.certain for finding in old] == [True]
    assert not model_findings("vllm/vllm-openai:v0.22.1", "gemma4", releases, at="", model="m")


@pytest.mark.parametrize(
    ("image", "fix"),
    [
        ("vllm/vllm-openai:v0.22.1", "take its `-cu129` image"),
        (f"{TRTLLM}:1.2.1", "install driver 580 or newer on alpha."),
    ],
)
def test_a_driver_too_old_for_the_images_cuda_is_refused(
    releases: Releases, image: str, fix: str
) -> None:
    (finding,) = driver_findings(image, "560.35.05", releases, at="", host="alpha")
    assert finding.certain
    assert fix in str(finding.refusal)
    assert not driver_findings(image, "580.65.06", releases, at="", host="alpha")


def test_cuda_of_a_release_that_nobody_looked_up_is_asked_for(releases: Releases) -> None:
    image = "vllm/vllm-openai:v0.32.0"
    (finding,) = driver_findings(image, "580.65.06", releases, at="", host="alpha")
    assert not finding.certain
    assert "printenv" in finding.refusal.fix


def test_whether_tensorrt_llm_knows_a_model_is_for_its_own_list(releases: Releases) -> None:
    for image, runs in (
        (f"{TRTLLM}:1.2.1", "trtllm"),
        ("tritonserver:26.06-trtllm-python-py3", ""),
    ):
        (finding,) = model_findings(image, "gemma4", releases, at="", model="m", runs=runs)
        assert not finding.certain
        assert "no table says whether TensorRT-LLM 1.2.1 knows gemma4" in str(finding.refusal)
        assert "tensorrt_llm" in finding.refusal.fix
