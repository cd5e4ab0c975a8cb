"""Whether a model wider than one GPU has the executor that its release asks for."""

from __future__ import annotations

from models.finding import UNTOUCHED, Finding
from models.refusal import Refusal
from models.releases.finding import asked_of_image
from models.releases.held import held_by
from models.releases.tables import Releases

RAY = "ray"


def executor_findings(
    image: str, width: int, executor: str, releases: Releases, *, at: str, model: str
) -> list[Finding]:
    """What stands against a model's executor; empty where it is known to do.

    In EXPLICIT mode, tensor × pipeline > 1 needs ray: Triton's release notes 24.12 to 25.08 ask for
    it (`"distributed_executor_backend": "ray"`), and no release is known that does without. vLLM
    does not depend on ray from 0.18.0 on, so a newer image may lack it.

    Args:
        image: the instance's image, as declared.
        width: tensor × pipeline parallelism, in GPUs.
        executor: `distributed_executor_backend`.
        releases: the tables.
        at: where the executor stands: the catalog entry.
        model: the model's name in the catalog.
    """
    held = held_by(image, releases)
    if width <= 1 or (held is not None and held.engine == "trtllm"):
        return []
    name = held.name if held else "the image"
    if executor != RAY:
        if held is not None and held.without_ray == "yes":
            return []
        return [
            Finding(
                Refusal(
                    f"{model} spans {width} GPUs with the `{executor}` executor, and Triton in "
                    f"EXPLICIT mode needs `{RAY}` for that; {name} is not known to do without",
                    consequence=f"The load would fail, or leave workers that hold the GPUs. "
                    f"{UNTOUCHED}",
                    fix=f"set `executor: {RAY}` in catalog/{model}.yaml.",
                    at=at,
                ),
                certain=True,
            )
        ]
    if held is not None and held.ray == "yes":
        return []
    lacking = held is not None and held.ray == "no"
    other = "take an image that holds it: those with a vLLM before 0.18 do."
    asked = asked_of_image(image, "import ray; print(ray.__version__)")
    return [
        Finding(
            Refusal(
                f"{model} spans {width} GPUs with the `{RAY}` executor, and {name} "
                + (
                    "holds no ray"
                    if lacking
                    else "may not hold it: vLLM from 0.18 on does not bring it"
                ),
                consequence=f"The load would fail. {UNTOUCHED}"
                if lacking
                else "Whether the model loads is not known.",
                fix=other
                if lacking
                else f"{asked} says it: write it into the image's row "
                f"of releases/. If it is not there, {other}",
                at=at,
            ),
            certain=lacking,
        )
    ]
