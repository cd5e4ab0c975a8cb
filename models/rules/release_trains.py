"""An image that can run its models, on a driver that can run the image: `models.releases`."""

from __future__ import annotations

from models.engine import TRAITS
from models.finding import Finding
from models.judged import Judged, JudgedInstance
from models.releases.architecture import model_findings
from models.releases.builds import differences
from models.releases.driver import driver_findings

NAME = "release-trains"
DESCRIPTION = "Images hold engines that know their models, and hosts have drivers for the images."
REMEDY = "Take the release that the message names, or a newer driver."


def findings(judged: Judged) -> list[Finding]:
    """One for each (image, architecture) and (image, driver) that does not meet."""
    found: dict[str, Finding] = {}
    for model in judged.models:
        if not model.image or model.weights is None or model.weights.trouble:
            continue  # `memory-fit` says that the weights are not known
        architecture = model.weights.config.get("model_type")
        for each in model_findings(
            model.image,
            architecture if isinstance(architecture, str) else "",
            judged.releases,
            at=f"berth:instances.{model.instance}.image",
            model=model.model or model.entry,
            runs=TRAITS[model.engine].runs if model.engine in TRAITS else "vllm",
        ):
            found.setdefault(str(each.refusal), each)
    for build in judged.builds.values():
        for each in differences(build):
            found.setdefault(str(each.refusal), each)
    for instance in judged.own_instances:
        for each in _driver(judged, instance):
            found.setdefault(str(each.refusal), each)
    return [found[said] for said in sorted(found)]


def _driver(judged: Judged, instance: JudgedInstance) -> list[Finding]:
    host = judged.hosts.get(instance.host)
    if host is None:
        return []
    return driver_findings(
        instance.image,
        host.driver or None,
        judged.releases,
        at=f"{instance.at}.image",
        host=host.name,
    )
