"""Whether an image can run a model's architecture."""

from __future__ import annotations

from typing import Literal

from models.finding import UNTOUCHED, Finding
from models.refusal import Refusal
from models.releases.finding import asked_of_image, nothing_known
from models.releases.held import Held, held_by, vllm_images
from models.releases.tables import Architecture, Releases
from models.releases.version import admits_none_after, at_least, upper_bound

Verdict = Literal["can", "cannot", "unknown"]


def model_findings(
    image: str, architecture: str, releases: Releases, *, at: str, model: str, runs: str = "vllm"
) -> list[Finding]:
    """What stands against running a model on an image; empty where it is known to run.

    Args:
        image: the instance's image, as declared.
        architecture: the model's `model_type`, from its config.json.
        releases: the tables.
        at: where the instance's image or the role stands in the config.
        model: the model's name in the catalog.
        runs: what of the image is to compute, `vllm` or `trtllm`, where it holds both.
    """
    held = held_by(image, releases)
    if held is None:
        return [nothing_known(image, at)]
    needs = releases.by_model_type.get(architecture)
    if needs is None:
        return [_unheard_of(held, architecture, at, model)]
    if held.engine == "trtllm" or (runs == "trtllm" and held.trtllm):
        return [_by_trtllm(image, held, needs, at, model)]
    verdict = judge(held, needs, releases)
    if verdict == "can":
        return []
    cause = f"{holds(held, releases)}; {model} is {architecture}, which needs {_needs(needs)}"
    if verdict == "cannot":
        consequence = f"The engine would not know the model and end its load. {UNTOUCHED}"
        fix = _first_that_can(needs, releases)
    else:
        consequence = f"Whether it runs is not known{f': {needs.note}' if needs.note else ''}."
        fix = _settling(image, needs, releases)
    refusal = Refusal(cause, consequence=consequence, fix=fix, at=at)
    return [Finding(refusal, certain=verdict == "cannot")]


def judge(held: Held, needs: Architecture, releases: Releases) -> Verdict:
    """Whether what an image holds can run an architecture.

    vLLM must have its code, and transformers must know it. Where it is not known which transformers
    an image holds, its vLLM speaks for it: one from `vllm_safe` on brings one that is new enough,
    unless its own requirement keeps such out. Before `vllm_safe` that requirement decides nothing:
    whoever built the image may have put another transformers beside it.
    """
    code = _within(held.vllm, needs.vllm_lacks, needs.vllm_has)
    if code == "cannot" or not (needs.transformers_lacks or needs.transformers_has):
        safe = code == "can" and at_least(held.vllm or "", needs.vllm_safe or "")
        return "can" if safe else "cannot" if code == "cannot" else "unknown"
    if held.transformers:
        known = _within(held.transformers, needs.transformers_lacks, needs.transformers_has)
        return known if known == "cannot" or code == "can" else "unknown"
    if not at_least(held.vllm or "", needs.vllm_safe or ""):
        return "unknown"
    pin, lacks = _pin(held, releases), needs.transformers_lacks
    return "cannot" if pin and lacks and admits_none_after(pin, lacks) else "can"


def holds(held: Held, releases: Releases) -> str:
    """`Triton 26.03 holds vLLM 0.17.1 and transformers < 5`, as far as it is known."""
    parts = []
    if held.vllm:
        parts.append(f"vLLM {held.vllm}")
    if held.trtllm:
        parts.append(f"TensorRT-LLM {held.trtllm}")
    bound = upper_bound(_pin(held, releases) or "")
    if held.transformers:
        parts.append(f"transformers {held.transformers}")
    elif bound:
        parts.append(f"transformers {_sign(bound[0])} {bound[1]}")
    return f"{held.name} holds {' and '.join(parts) or 'an engine that no table names'}"


def _within(this: str | None, lacks: str | None, has: str | None) -> Verdict:
    if this is None:
        return "unknown"
    if has and at_least(this, has):
        return "can"
    return "cannot" if lacks and at_least(lacks, this) else "unknown"


def _pin(held: Held, releases: Releases) -> str | None:
    requirement = releases.requirement(held.vllm)
    return requirement.transformers if requirement else None


def _needs(needs: Architecture) -> str:
    parts = [
        f"{name} ≥ {has}" if has else f"{name} newer than {lacks}"
        for name, has, lacks in (
            ("transformers", needs.transformers_has, needs.transformers_lacks),
            ("vLLM", needs.vllm_safe or needs.vllm_has, needs.vllm_lacks),
        )
        if has or lacks
    ]
    return " and ".join(parts) or "what no table says"


def _able(needs: Architecture, releases: Releases) -> str:
    """The oldest of NVIDIA's releases that can, or nothing: `Triton 26.06 (vLLM 0.22.1)`."""
    for row, held in vllm_images(releases):
        if judge(held, needs, releases) == "can":
            return f"Triton {row.tag} (vLLM {row.vllm})"
    return ""


def _first_that_can(needs: Architecture, releases: Releases) -> str:
    first = _able(needs, releases)
    then = "until then" if first else "meanwhile"
    known = (
        f"first that can: {first}" if first else "none in releases/triton.csv is known to run it"
    )
    safe = needs.vllm_safe
    return f"{known}; {then}: engine vllm with {safe} or newer." if safe else f"{known}."


def _settling(image: str, needs: Architecture, releases: Releases) -> str:
    asked = asked_of_image(
        image, "import transformers as t, vllm as v; print(t.__version__, v.__version__)"
    )
    engine = f"engine vllm with {needs.vllm_safe} or newer" if needs.vllm_safe else ""
    known = " and ".join(filter(None, (_able(needs, releases), engine)))
    says = f"{asked} says what it holds: write it into the image's row of releases/."
    return f"{says} Known to run it: {known}." if known else says


def _by_trtllm(image: str, held: Held, needs: Architecture, at: str, model: str) -> Finding:
    """No table says which architectures TensorRT-LLM runs; at most its transformers tells.

    Not even an older transformers is certain: TensorRT-LLM brings some configurations itself.
    """
    release = f"TensorRT-LLM {held.trtllm}" if held.trtllm else "its TensorRT-LLM"
    cause = f"no table says whether {release} knows {needs.model_type} ({model})"
    if held.transformers:
        cause += f"; beside it is transformers {held.transformers}"
        if needs.transformers_has and not at_least(held.transformers, needs.transformers_has):
            cause += f", and {needs.model_type} is known from {needs.transformers_has} on"
    asked = asked_of_image(
        image, "import transformers as t, tensorrt_llm as r; print(t.__version__, r.__version__)"
    )
    return Finding(
        Refusal(
            cause,
            consequence="Whether it loads is not known.",
            fix=f"see {release}'s list of supported models; {asked} says what the image holds.",
            at=at,
        ),
        certain=False,
    )


def _unheard_of(held: Held, architecture: str, at: str, model: str) -> Finding:
    engine = f"vLLM {held.vllm}" if held.vllm else "the engine in it"
    engine = f"TensorRT-LLM {held.trtllm}" if held.engine == "trtllm" and held.trtllm else engine
    return Finding(
        Refusal(
            f"nothing says what an architecture `{architecture}` ({model}) needs",
            consequence=f"Whether {held.name} can run it is not known.",
            fix=f"see whether {engine} lists it among its supported models, and add its row to "
            "releases/architectures.csv (docs/releases.md).",
            at=at,
        ),
        certain=False,
    )


def _sign(operator: str) -> str:
    return {"<=": "≤"}.get(operator, operator)
