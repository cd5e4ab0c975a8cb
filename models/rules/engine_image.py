"""An image holds the engine that a role is to be served by."""

from __future__ import annotations

from models.engine import TRAITS
from models.finding import Finding, wrong
from models.judged import Judged, JudgedModel
from models.releases.held import Held, held_by

NAME = "engine-image"
DESCRIPTION = "The image of an instance or a server holds what its roles' engines run on."
REMEDY = "Take an image that holds the engine, or an engine that the image holds."
CALLED = {"vllm": "vLLM", "trtllm": "TensorRT-LLM"}


def findings(judged: Judged) -> list[Finding]:
    """One for each model on an image that is known to lack its engine."""
    found = []
    for model in judged.models:
        held = held_by(model.image, judged.releases) if model.image else None
        traits = TRAITS.get(model.engine)
        if held is None or traits is None:
            continue  # `release-trains` says that nothing is known of the image
        wanted = CALLED[traits.runs]
        has = {name: getattr(held, runs) for runs, name in CALLED.items() if getattr(held, runs)}
        if traits.entry and held.standalone:
            found.append(_lacks(judged, model, held, has, "Triton"))
        elif has and wanted not in has:
            found.append(_lacks(judged, model, held, has, wanted))
    return found


def _lacks(
    judged: Judged, model: JudgedModel, held: Held, has: dict[str, str], lacking: str
) -> Finding:
    there = " and ".join(f"{name} {version}" for name, version in has.items())
    own = TRAITS[model.engine].for_life
    cause = f"{held.name} holds {there} and no {lacking}"
    roles = "+".join(model.roles) or model.model
    return wrong(
        f"`{model.engine}` of {roles} runs on {lacking}; {cause}",
        consequence="It would not start.",
        fix=_fix(judged, model, own=own),
        at=f"{model.at}.engine",
    )


def _fix(judged: Judged, model: JudgedModel, *, own: bool) -> str:
    kind = TRAITS[model.engine].runs
    if own:
        image = f"set `berth:images.{model.engine}` to {_such_as(model.engine)}"
    else:
        image = f"give {model.instance} {_such_as(model.engine)}"
        able = [
            each.name
            for each in judged.instances
            if each.host == model.host
            and not each.role
            and (held := held_by(each.image, judged.releases)) is not None
            and getattr(held, kind)
            and not held.standalone
        ]
        if able:
            image += f", or put the role on an instance that holds it: {', '.join(sorted(able))}"
    return f"{image}; or serve it by another engine."


def _such_as(engine: str) -> str:
    traits = TRAITS[engine]
    if traits.entry:
        return f"an image `tritonserver:YY.MM-{traits.runs}-python-py3`"
    if traits.runs == "vllm":
        return "an image `vllm/vllm-openai:vX.Y.Z`"
    return "an image `nvcr.io/nvidia/tensorrt-llm/release:X.Y.Z`"
