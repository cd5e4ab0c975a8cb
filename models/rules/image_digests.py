"""Images by digest, except where a host builds its own: what was reviewed is what runs."""

from __future__ import annotations

import re

from models.build import BuiltImage
from models.finding import Finding, wrong
from models.judged import Judged, JudgedInstance, JudgedService

NAME = "image-digests"
DESCRIPTION = "Images are named by digest, except on hosts that declare `image_references: tag`."
REMEDY = "Write `repository:tag@sha256:…`."
_DIGEST = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")


def findings(judged: Judged) -> list[Finding]:
    """One for each container whose image could change under it."""
    found = []
    builds: dict[str, Finding] = {}
    own: list[JudgedInstance | JudgedService] = [*judged.own_instances]
    own += [each for each in judged.services if each.image]
    for instance in own:
        host = judged.hosts.get(instance.host)
        if host is not None and host.image_references == "tag":
            continue
        if build := judged.builds.get(instance.image):
            # The build itself is named by a digest of all that it is made from.
            loose = [base for base in build.bases if not _DIGEST.fullmatch(base)]
            builds |= {base: _of_build(build, base) for base in loose}
            continue
        if _DIGEST.fullmatch(instance.image):
            continue
        found.append(
            wrong(
                f"image `{instance.image}` is not named by its digest",
                consequence="What runs could be another image than the one that was reviewed.",
                fix="write `repository:tag@sha256:…`; `docker buildx imagetools inspect "
                f"{instance.image.partition('@')[0] or 'IMAGE'}` prints the digest.",
                at=f"{instance.at}.image",
            )
        )
    return [*found, *builds.values()]


def _of_build(build: BuiltImage, base: str) -> Finding:
    return wrong(
        f"it is built from `{base}`, which is not named by its digest",
        consequence="What runs could be made from another image than the one that was reviewed.",
        fix="write `repository:tag@sha256:…` in the Dockerfile, or in the argument that names it.",
        at=build.at,
    )
