"""What a built image holds, as a resource: asked once, and judged before anything uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.providers.host_inventory import shipped
from components.providers.plain_refusals import BerthProvider, same
from components.providers.progress import progress, say
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host
from components.renderers import berth_host
from models.build import BuiltImage
from models.refusal import Refusal, Refusals
from models.releases.builds import built_findings
from models.releases.packed import unpacked

_REPLACES = ("host", "build")
_UPDATES = ("ssh", "reference", "image", "bases", "declared", "models")
_NOTED = ("data_dir", "tables")
_INPUTS = (*_REPLACES, *_UPDATES, *_NOTED)
PROBE_TIMEOUT_S = 180.0
"""Bound on asking an image, in seconds; the container itself is given less."""


class ImageVersionsProvider(BerthProvider):
    """Asks an image what it holds, and refuses it where that is not what it is wanted for."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer. Tables that changed are the next preview's to judge by."""
        replaces = [key for key in _REPLACES if not same(_olds.get(key), _news.get(key))]
        updates = [key for key in _UPDATES if not same(_olds.get(key), _news.get(key))]
        return DiffResult(
            changes=bool(replaces or updates), replaces=replaces, delete_before_replace=True
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Ask the image, and judge what it says.

        Raises:
            Refusal: it cannot be asked, holds other versions than declared, or cannot run a model
                that is planned on it; nothing that depends on it has been touched then.
        """
        return CreateResult(f"{props['host']}:{props['build']}", _judged(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """As `create`.

        Raises:
            Refusal: as `create`.
        """
        return UpdateResult(_judged(_news))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Whether the host still knows it, so that previews can judge by it; else it is gone.

        Raises:
            Refusal: the host cannot be reached.
        """
        answer = _ask(props, "recalled")
        inputs = {key: props[key] for key in _INPUTS if key in props}
        if "versions" not in answer:
            return ReadResult("", {})
        return ReadResult(id_, inputs | {"versions": answer["versions"]}, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Nothing: the image stays, and so does what is known of it."""


class ImageVersions(Resource, module="berth", name="ImageVersions"):
    """What is in an image that a host built, found good for what is planned on it."""

    versions: pulumi.Output[Mapping[str, str]]
    """Package → version."""

    def __init__(
        self,
        name: str,
        *,
        ssh: pulumi.Input[Mapping[str, Any]],
        host: str,
        data_dir: str,
        build: str,
        reference: str,
        image: pulumi.Input[str],
        bases: Sequence[str],
        declared: Mapping[str, str],
        models: Mapping[str, str],
        tables: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare that an image is to be asked and judged.

        Args:
            ssh: how the host is reached, as for `TritonModel`.
            host: the host's name.
            data_dir: the host's directory with the weights.
            build: the build's name.
            reference: the image's name and tag.
            image: its id.
            bases: images that it is made from.
            declared: package → version that it is declared to hold.
            models: model's name → its weights directory, of all that it is to run here.
            tables: the release tables (`models.releases.packed`).
        """
        properties = {
            "ssh": ssh,
            "host": host,
            "data_dir": data_dir,
            "build": build,
            "reference": reference,
            "image": image,
            "bases": list(bases),
            "declared": dict(declared),
            "models": dict(models),
            "tables": tables,
            "versions": None,
        }
        super().__init__(ImageVersionsProvider(), name, properties, opts)


def _judged(props: Mapping[str, Any]) -> dict[str, Any]:
    models = dict(props["models"])
    answer = _ask(props, "probed")
    trouble = answer.get("trouble")
    if trouble and (models or props["declared"]):
        raise Refusal(
            f"build `{props['build']}` cannot be asked what it holds: {trouble}",
            consequence="Whether it can run what is planned on it is not known, so nothing was "
            "stopped or loaded.",
            fix=f"`docker run --rm --entrypoint python3 {props['reference']} --version` on "
            f"{props['host']} shows it; a serving image needs `python3`.",
            at=f"berth:builds.{props['build']}",
        )
    built = BuiltImage(
        name=props["build"],
        reference=props["reference"],
        bases=tuple(props["bases"]),
        declared=dict(props["declared"]),
        found=answer.get("versions", {}),
    )
    findings = built_findings(
        built,
        {model: answer["model_types"].get(weights, "") for model, weights in models.items()},
        answer["driver"],
        unpacked(props["tables"]),
        host=props["host"],
    )
    for finding in findings:
        if not finding.certain:
            say(f"{props['host']}: {finding.refusal}")
    refusals = [finding.refusal for finding in findings if finding.certain]
    if refusals:
        raise Refusals(refusals)
    inputs = {key: props[key] for key in _INPUTS if key in props}
    return inputs | {"versions": dict(built.found or {})}


def _ask(props: Mapping[str, Any], question: str) -> dict[str, Any]:
    payload = {
        "image": props["image"],
        "weights": [f"{props['data_dir']}/weights/{name}" for name in props["models"].values()],
        "program": berth_host.packed(),
    }

    async def work(session: Session) -> dict[str, Any]:
        what = f"asking build {props['build']} what it holds"
        async with progress(f"{props['host']}: {what}"):
            return await session.run_python(
                shipped("host.images", question), payload, doing=what, timeout_s=PROBE_TIMEOUT_S
            )

    return on_host(props["ssh"], work)
