"""What is said where the tables say nothing, and how an image is asked."""

from __future__ import annotations

from models.build import is_built
from models.finding import Finding
from models.refusal import Refusal
from models.releases.held import is_monthly, is_server


def nothing_known(image: str, at: str) -> Finding:
    """No table says what `image` holds."""
    if is_built(image):
        name = image.partition("/")[2].partition(":")[0]
        return Finding(
            Refusal(
                f"build `{name}` was not made yet, so nothing says what it will hold",
                consequence="Whether it can run what is planned on it is judged once it is built, "
                "before anything is stopped or loaded.",
                fix=f"to have it judged now, declare `berth:builds.{name}.versions`.",
                at=f"berth:builds.{name}",  # Of all that name it: it is told once.
            ),
            certain=False,
        )
    if is_monthly(image):
        fix = "add the release's row to releases/triton.csv (docs/releases.md)."
    elif is_server(image):
        fix = "name a release by its own tag, such as vllm-openai:v0.32.0 or "
        fix += "tensorrt-llm/release:1.2.1: `latest` and the like do not say which it is."
    else:
        fix = "write repository:tag@sha256:… in place of a digest alone, or add a row for the "
        fix += "image to releases/images.csv (docs/releases.md)."
    return Finding(
        Refusal(
            f"nothing says what the image {image} holds",
            consequence="Whether it can run what is planned on it, on this driver, is not known.",
            fix=fix,
            at=at,
        ),
        certain=False,
    )


def asked_of_image(image: str, python: str) -> str:
    """The command with which a person asks an image, in its own Python. It needs no GPU."""
    return f"`docker run --rm --entrypoint python3 {image} -c '{python}'`"
