"""An engine and an image that do not go together are refused before anything is pulled."""

from __future__ import annotations

import pytest

from models.judged import Judged
from models.rules import engine_image
from tests.models.rules.plans import DIGEST, GOOD, refused, with_instance, with_model

NVIDIA = "nvcr.io/nvidia"
VLLM_TRITON = f"{NVIDIA}/tritonserver:26.06-vllm-python-py3@{DIGEST}"
TRTLLM_TRITON = f"{NVIDIA}/tritonserver:26.06-trtllm-python-py3@{DIGEST}"
VLLM_OWN, TRTLLM_OWN = "vllm/vllm-openai:v0.19.1", f"{NVIDIA}/tensorrt-llm/release:1.2.1"


def serving(engine: str, image: str) -> Judged:
    return with_model(engine=engine, image=image)


def test_an_image_that_holds_the_engine_is_let_pass() -> None:
    assert engine_image.findings(GOOD) == []
    for engine, image in (
        ("triton-llmapi", TRTLLM_TRITON),
        ("triton-batcher", TRTLLM_TRITON),
        ("triton-openai", VLLM_TRITON),
        ("triton-openai-batcher", TRTLLM_TRITON),
        ("vllm", VLLM_OWN),
        ("trtllm-serve", TRTLLM_OWN),
        ("vllm", VLLM_TRITON),
        ("triton-llmapi", "berth-sandbox/tritonserver:2.51.0-vllm"),
    ):
        assert engine_image.findings(serving(engine, image)) == [], (engine, image)


@pytest.mark.parametrize(
    ("engine", "image", "says"),
    [
        ("triton-vllm", TRTLLM_TRITON, "holds TensorRT-LLM 1.2.1 and no vLLM"),
        ("triton-llmapi", VLLM_TRITON, "holds vLLM 0.22.1 and no TensorRT-LLM"),
        ("triton-batcher", VLLM_TRITON, "holds vLLM 0.22.1 and no TensorRT-LLM"),
        ("triton-vllm", VLLM_OWN, "holds vLLM 0.19.1 and no Triton"),
        ("triton-llmapi", TRTLLM_OWN, "holds TensorRT-LLM 1.2.1 and no Triton"),
        ("vllm", TRTLLM_OWN, "holds TensorRT-LLM 1.2.1 and no vLLM"),
        ("triton-openai-batcher", VLLM_TRITON, "tritonserver:YY.MM-trtllm-python-py3"),
        ("triton-openai-batcher", TRTLLM_OWN, "set `berth:images.triton-openai-batcher` to"),
        ("trtllm-serve", VLLM_OWN, "set `berth:images.trtllm-serve`"),
    ],
)
def test_an_image_without_the_engine_is_refused(engine: str, image: str, says: str) -> None:
    assert says in refused(engine_image, serving(engine, image))


def test_an_instance_that_holds_the_engine_is_named() -> None:
    judged = with_instance("triton@0", image=TRTLLM_TRITON)
    model = next(each for each in judged.models if each.model == "small")
    other = with_model(engine="triton-llmapi")
    judged = Judged(
        judged.stack, judged.hosts, judged.instances, other.models, releases=judged.releases
    )
    assert model.instance == "triton@2"
    assert "put the role on an instance that holds it: triton@0" in refused(engine_image, judged)


def test_of_an_unknown_image_it_says_nothing() -> None:
    assert engine_image.findings(serving("triton-llmapi", "acme/own:1")) == []
