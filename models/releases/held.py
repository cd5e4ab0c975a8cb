"""What an image holds, by its reference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from models.releases.tables import OwnImage, Releases, TritonRelease

NO_CUDA = "none"
"""An image that needs no driver."""
_VLLM = re.compile(r"vllm-openai:v(\d+(?:\.\d+)+(?:rc\d+)?(?:\.?post\d+)?)((?:-[a-z0-9_]+)*)")
_TRTLLM = re.compile(r"(?:.*/)?tensorrt-llm/release:(\d+(?:\.\d+)+(?:rc\d+)?(?:\.?post\d+)?)")
_CUDA = re.compile(r"-cu(\d\d)(\d)(?=-|$)")
_NVIDIA = re.compile(r"tritonserver:(\d\d\.\d\d)-(vllm|trtllm)-python-py3")


@dataclass(frozen=True)
class Held:
    """What is in an image. None is unknown, but an image of one engine has not the other's."""

    name: str
    """As people call it: `Triton 26.03`, or the image's own name and tag."""
    engine: Literal["vllm", "trtllm"] | None = None
    """The engine that it is made for."""
    triton: str | None = None
    vllm: str | None = None
    trtllm: str | None = None
    transformers: str | None = None
    ray: str | None = None
    """`yes` or `no`."""
    cuda: str | None = None
    """A version, or `none` for an image that needs no driver."""
    driver: str | None = None
    """The driver that this CUDA came with; older ones may do."""
    without_ray: str | None = None
    """`yes` if tensor × pipeline > 1 is known to run in EXPLICIT mode without ray."""
    standalone: bool = False
    """Whether it is an engine's own image, without Triton."""


@lru_cache(maxsize=4096)
def held_by(image: str, releases: Releases) -> Held | None:
    """What `image` holds, or None where the tables do not say.

    Registry and digest do not matter: a mirror keeps name and tag. An own image goes before one of
    NVIDIA's, so that a rebuilt one can be told apart. A reference without a tag says nothing.

    Args:
        image: `nvcr.io/nvidia/tritonserver:26.03-vllm-python-py3@sha256:…`, or any other text.
    """
    named = image.split("@", 1)[0]
    for row in releases.images:
        if named == row.reference or named.endswith(f"/{row.reference}"):
            return _own(row, releases)
    nvidia = _NVIDIA.fullmatch(named.rsplit("/", 1)[-1])
    release = releases.by_tag.get(nvidia[1]) if nvidia else None
    if nvidia is None or release is None:
        return _of_server(named, releases)
    return _of_release(release, "vllm" if nvidia[2] == "vllm" else "trtllm", releases)


def is_server(image: str) -> bool:
    """Whether the reference reads like vLLM's or TensorRT-LLM's own image, whatever its tag."""
    named = image.split("@", 1)[0].partition(":")[0]
    return named.endswith(("vllm/vllm-openai", "tensorrt-llm/release"))


def vllm_images(releases: Releases) -> list[tuple[TritonRelease, Held]]:
    """NVIDIA's vLLM images that the tables know, oldest first."""
    return [(row, _of_release(row, "vllm", releases)) for row in releases.triton if row.vllm]


def is_monthly(image: str) -> bool:
    """Whether the reference reads like one of NVIDIA's monthly releases."""
    return bool(_NVIDIA.fullmatch(image.split("@", 1)[0].rsplit("/", 1)[-1]))


def _of_release(row: TritonRelease, engine: Literal["vllm", "trtllm"], releases: Releases) -> Held:
    vllm = engine == "vllm"
    return Held(
        name=f"Triton {row.tag}",
        engine=engine,
        triton=row.triton,
        vllm=row.vllm if vllm else None,
        trtllm=None if vllm else row.trtllm,
        transformers=row.vllm_transformers if vllm else row.trtllm_transformers,
        ray=(row.ray or _ray(row.vllm, releases)) if vllm else None,
        cuda=row.vllm_cuda if vllm else row.trtllm_cuda,
        driver=row.vllm_driver if vllm else row.trtllm_driver,
        without_ray=row.without_ray if vllm else None,
    )


def _of_server(named: str, releases: Releases) -> Held | None:
    """Images of vLLM and of TensorRT-LLM: their tag is the engine's release."""
    if vllm := _VLLM.fullmatch(named.rsplit("/", 1)[-1]):
        row = releases.server_image("vllm-openai", vllm[1])
        told = _CUDA.search(vllm[2])
        return Held(
            name=f"the image of vLLM {vllm[1]}{vllm[2]}",
            engine="vllm",
            vllm=vllm[1],
            ray=_ray(vllm[1], releases),
            cuda=f"{told[1]}.{told[2]}" if told else row.cuda if row else None,
            standalone=True,
        )
    if trtllm := _TRTLLM.fullmatch(named):
        row = releases.server_image("tensorrt-llm/release", trtllm[1])
        return Held(
            name=f"the image of TensorRT-LLM {trtllm[1]}",
            engine="trtllm",
            trtllm=trtllm[1],
            transformers=row.transformers if row else None,
            cuda=row.cuda if row else None,
            standalone=True,
        )
    return None


def _own(row: OwnImage, releases: Releases) -> Held:
    return Held(
        name=row.reference,
        engine="vllm" if row.vllm else "trtllm" if row.trtllm else None,
        triton=row.triton,
        vllm=row.vllm,
        trtllm=row.trtllm,
        transformers=row.transformers,
        ray=row.ray or _ray(row.vllm, releases),
        cuda=row.cuda,
        driver=row.driver,
        without_ray=row.without_ray,
    )


def _ray(vllm: str | None, releases: Releases) -> str | None:
    """`yes` where vLLM brings ray; one that does not leaves open whether the image has it."""
    requirement = releases.requirement(vllm)
    return "yes" if requirement and requirement.depends_on_ray == "yes" else None
