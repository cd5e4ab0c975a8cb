"""Builds: what an image that a host built holds, beside the tables, and what stands against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from models.build import BuiltImage
from models.finding import Finding, wrong
from models.releases.architecture import model_findings
from models.releases.driver import driver_findings
from models.releases.held import NO_CUDA, held_by
from models.releases.tables import OwnImage, Releases
from models.releases.version import version


def with_builds(releases: Releases, builds: Iterable[BuiltImage]) -> Releases:
    """The tables with a row for each build of which something is known."""
    rows = {build.reference: _row(build, releases) for build in builds}
    known = [row for row in rows.values() if row is not None]
    others = (row for row in releases.images if row.reference not in rows)
    return replace(releases, images=(*others, *known)) if rows else releases


def _row(build: BuiltImage, releases: Releases) -> OwnImage | None:
    """What the image said; else what it is declared to hold, and its base for the rest."""
    said = build.declared if build.found is None else build.found
    if not said:
        return None
    known = {name: text for name, text in said.items() if version(text) or text == NO_CUDA}
    base = held_by(build.bases[0], releases) if build.bases else None
    asked = build.found is not None
    ray = ("yes" if "ray" in said else "no") if asked else None
    return OwnImage.model_validate(
        {
            "reference": build.reference,
            "triton": known.get("tritonserver") or (base.triton if base else None),
            "vllm": known.get("vllm"),
            "trtllm": known.get("tensorrt_llm"),
            "transformers": known.get("transformers"),
            "ray": ray,
            "cuda": known.get("cuda") or (base.cuda if base else None),
            "driver": base.driver if base and not known.get("cuda") else None,
            "without_ray": base.without_ray if base else None,
            "source": build.at,
        }
    )


def differences(build: BuiltImage) -> list[Finding]:
    """Where the image is another than it is declared to be."""
    if build.found is None:
        return []
    return [
        wrong(
            f"{name} {declared} is declared, and the image holds "
            + (f"{name} {build.found[name]}" if name in build.found else f"no {name}"),
            consequence="What was reviewed is not what would run.",
            fix="mend the Dockerfile, or what is declared.",
            at=f"{build.at}.versions.{name}",
        )
        for name, declared in sorted(build.declared.items())
        if not _same(declared, build.found.get(name))
    ]


def _same(declared: str, found: str | None) -> bool:
    return found is not None and version(declared) == version(found)


def built_findings(
    build: BuiltImage, models: Mapping[str, str], driver: str, releases: Releases, *, host: str
) -> list[Finding]:
    """Everything that stands against a build that has been asked what it holds.

    Args:
        build: the build, with `found`.
        models: model's name → its `model_type`, of all that it is to run.
        driver: the host's NVIDIA driver; empty where it is not known.
        releases: the tables.
        host: the host's name.
    """
    found = list(differences(build))
    here = with_builds(releases, [build])
    if models and not {"vllm", "tensorrt_llm"} & set(build.found or {}):
        found.append(
            wrong(
                f"it holds neither vLLM nor TensorRT-LLM, and is to run {', '.join(models)}",
                consequence="No engine would start.",
                fix="mend the Dockerfile: the package has to be there for the image's `python3`.",
                at=build.at,
            )
        )
        return found
    for model, architecture in sorted(models.items()):
        if not architecture:
            continue  # Without its weights no model is loaded, which is told elsewhere.
        found += model_findings(build.reference, architecture, here, at=build.at, model=model)
    if models:
        found += driver_findings(build.reference, driver or None, here, at=build.at, host=host)
    return found
