"""The tables in `releases/`, one row class each. An empty cell is None, which means unknown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from models.releases.version import SpecifiersText, VersionText, at_least
from models.scalars import Declared


def _empty_is_unknown(value: object) -> object:
    return value or None


def _numbers(value: object) -> object:
    return value.split() if isinstance(value, str) else value


YesNo = Annotated[Literal["yes", "no"] | None, BeforeValidator(_empty_is_unknown)]
Cuda = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]


class TritonRelease(Declared):
    """One month's release: its vLLM image and its TensorRT-LLM image."""

    tag: Annotated[str, Field(pattern=r"^\d\d\.\d\d$")]
    """Year and month of the release, `26.03`, as the image's tag begins."""
    triton: VersionText
    vllm: VersionText
    vllm_cuda: VersionText
    vllm_driver: VersionText
    """The driver that the vLLM image's CUDA came with."""
    vllm_transformers: VersionText
    ray: YesNo
    """`yes` if the vLLM image holds ray, `no` if not."""
    without_ray: YesNo
    """`yes` if tensor × pipeline > 1 was seen to run in EXPLICIT mode without ray."""
    trtllm: VersionText
    trtllm_cuda: VersionText
    trtllm_driver: VersionText
    trtllm_transformers: VersionText
    source: str = Field(min_length=1)
    """Where the row was read."""


class VllmRequirement(Declared):
    """What a range of vLLM releases asks of the packages beside it."""

    first: VersionText
    last: VersionText
    """Newest release of the range, itself included."""
    transformers: SpecifiersText
    """A version range, `>=4.56.0,<5`."""
    torch: VersionText
    depends_on_ray: YesNo
    source: str = Field(min_length=1)
    """Where the row was read."""


class OwnImage(Declared):
    """An image that is not one of NVIDIA's monthly ones."""

    reference: Annotated[str, Field(pattern=r"^[^@\s]+:[^@/\s]+$")]
    """Name and tag (`name:tag`), without registry and digest."""
    triton: VersionText
    vllm: VersionText
    trtllm: VersionText
    transformers: VersionText
    ray: YesNo
    """`yes` if the image holds ray, `no` if not."""
    cuda: Annotated[Literal["none"] | Cuda | None, BeforeValidator(_empty_is_unknown)]
    """A CUDA version, or `none` if the image needs no driver."""
    driver: VersionText
    without_ray: YesNo
    """`yes` if tensor × pipeline > 1 was seen to run in EXPLICIT mode without ray."""
    source: str = Field(min_length=1)
    """Where the row was read."""


class Architecture(Declared):
    """What a `model_type` of config.json needs. Between two known releases is unknown."""

    model_type: str = Field(min_length=1)
    """`model_type` as config.json (or its `text_config`) has it."""
    transformers_lacks: VersionText
    """The newest transformers known not to know it."""
    transformers_has: VersionText
    """The oldest transformers known to know it. Empty as is `lacks`: nothing is asked of it."""
    vllm_lacks: VersionText
    """The newest vLLM known not to know it."""
    vllm_has: VersionText
    """The oldest vLLM known to have its code."""
    vllm_safe: VersionText
    """The oldest vLLM known to run it with the transformers that it brings itself."""
    note: str
    source: str = Field(min_length=1)
    """Where the row was read."""


class CudaSupport(Declared):
    """Which drivers a CUDA release runs on, by their branch (580 of 580.95.05)."""

    cuda: Cuda
    """A major (`13`), or major and minor (`13.2`), which goes before its major's row."""
    floor: int = Field(gt=0)
    """The oldest driver branch it runs on: minor-version compatibility."""
    forward: Annotated[tuple[int, ...], BeforeValidator(_numbers)]
    """Older branches that its compat libraries carry, on data-centre cards only; by spaces."""
    source: str = Field(min_length=1)
    """Where the row was read."""


class ServerImage(Declared):
    """What a range of releases holds, of images whose tag is the release of their engine."""

    image: Literal["vllm-openai", "tensorrt-llm/release"]
    """vLLM's (`vllm/vllm-openai:vX.Y.Z`) or NVIDIA's (`nvcr.io/nvidia/tensorrt-llm/release:X.Y.Z`).
    """
    first: VersionText
    last: VersionText
    """Newest release of the range, itself included."""
    cuda: VersionText
    """Of the tag without a suffix; `-cu129` says it itself."""
    transformers: VersionText
    source: str = Field(min_length=1)
    """Where the row was read."""


@dataclass(frozen=True, eq=False)
class Releases:
    """All tables. Compared and hashed by identity, so that answers can be memoised by it."""

    triton: tuple[TritonRelease, ...]
    """Oldest first."""
    vllm: tuple[VllmRequirement, ...]
    images: tuple[OwnImage, ...]
    architectures: tuple[Architecture, ...]
    cuda: tuple[CudaSupport, ...]
    servers: tuple[ServerImage, ...] = ()

    @cached_property
    def by_tag(self) -> dict[str, TritonRelease]:
        """Tag (`26.03`) → its row."""
        return {row.tag: row for row in self.triton}

    @cached_property
    def by_model_type(self) -> dict[str, Architecture]:
        """`model_type` → its row."""
        return {row.model_type: row for row in self.architectures}

    @cached_property
    def _by_cuda(self) -> dict[str, CudaSupport]:
        return {row.cuda: row for row in self.cuda}

    def requirement(self, vllm: str | None) -> VllmRequirement | None:
        """What that vLLM release asks of other packages, or None where no row says it."""
        for row in self.vllm if vllm else ():
            if at_least(vllm or "", row.first or "") and at_least(row.last or "", vllm or ""):
                return row
        return None

    def server_image(self, image: str, release: str) -> ServerImage | None:
        """What a release of `image` holds, or None where no row says it."""
        for row in self.servers:
            inside = at_least(release, row.first or "") and at_least(row.last or "", release)
            if row.image == image and inside:
                return row
        return None

    def drivers(self, cuda: str) -> CudaSupport | None:
        """Which drivers `cuda` (`13.2.1`) runs on, or None where no row says it."""
        major_minor = ".".join(cuda.split(".")[:2])
        return self._by_cuda.get(major_minor) or self._by_cuda.get(cuda.split(".")[0])


NO_TABLES = Releases((), (), (), (), ())
"""Of which everything is unknown."""
