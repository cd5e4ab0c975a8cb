"""Images that are built on a host from a Dockerfile of the project, and how they are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from models.finding import UNTOUCHED
from models.refusal import Refusal
from models.releases.version import VersionText
from models.scalars import Declared

PREFIX = "build:"
"""What stands before a build's name where an image is named."""
REPOSITORY = "berth-build"
"""Of all images that are built on hosts; no registry has it."""

Relative = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$")
]
ArgName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class BuildVersions(Declared):
    """What a build is to hold. The image itself is asked once it is built, and must agree."""

    vllm: VersionText = None
    """vLLM's version."""
    transformers: VersionText = None
    """Version of transformers."""
    torch: VersionText = None
    """PyTorch's version."""
    tensorrt_llm: VersionText = None
    """TensorRT-LLM's version."""
    tritonserver: VersionText = None
    """Triton's own version, such as 2.51.0, not its release's."""

    @property
    def said(self) -> dict[str, str]:
        """Those that are declared."""
        return {name: value for name, value in self.model_dump().items() if value}


class Build(Declared):
    """An image that is built on every host that uses it. It is named `build:<name>` wherever an
    image of an engine is: in `berth:images`, in a catalog entry, in an instance."""

    context: Relative
    """Directory of the project that is sent to Docker. All files in it count as inputs."""
    dockerfile: Relative = "Dockerfile"
    """The recipe, relative to `context`."""
    args: dict[ArgName, str] = {}
    """Build arguments (`ARG`). No secrets: `docker history` shows them."""
    versions: BuildVersions | None = None
    """What it is to hold, so that a preview can judge a build that was never made. Unset: unknown
    until it is built; then the image says it."""


@dataclass(frozen=True)
class PlannedBuild:
    """A build with its inputs read."""

    name: str
    reference: str
    """Name and tag of the image; the tag is a digest of all inputs, so others are another image."""
    context: str
    """Directory, relative to the project."""
    dockerfile: str
    """Relative to the context."""
    args: Mapping[str, str]
    bases: tuple[str, ...]
    """Images that its recipe starts from or copies out of."""
    versions: Mapping[str, str]
    """What it is declared to hold."""


@dataclass(frozen=True)
class BuiltImage:
    """A build as the rules judge it."""

    name: str
    reference: str
    bases: tuple[str, ...]
    declared: Mapping[str, str] = field(default_factory=dict)
    """Package → version, as declared."""
    found: Mapping[str, str] | None = None
    """Package → version, as the image said once it was built; None: it was not asked yet."""

    @property
    def at(self) -> str:
        """Where it is declared."""
        return f"berth:builds.{self.name}"


def reference(name: str, digest: str) -> str:
    """Name and tag of a build's image.

    Args:
        digest: of all inputs, in hex.
    """
    return f"{REPOSITORY}/{name}:{digest[:12]}"


def is_built(image: str) -> bool:
    """Whether an image is one that a host builds."""
    return image.startswith(f"{REPOSITORY}/")


def resolved(image: str, builds: Mapping[str, PlannedBuild], at: str) -> str:
    """The image that is meant: a build by its reference, any other as it is.

    Args:
        image: as declared.
        builds: name → build, of the stack.
        at: where it is declared.

    Raises:
        Refusal: there is no such build.
    """
    if not image.startswith(PREFIX):
        return image
    name = image.removeprefix(PREFIX)
    if name not in builds:
        raise Refusal(
            f"no build `{name}`",
            consequence=UNTOUCHED,
            fix=f"builds declared: {', '.join(sorted(builds))}."
            if builds
            else f"declare it: `berth:builds.{name}` with its `context`.",
            at=at,
        )
    return builds[name].reference
