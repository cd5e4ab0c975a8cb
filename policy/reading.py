"""A stack as the engine shows it, for the rules: what will really be made, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pulumi_policy import PolicyResource

from models import known
from models.claim_record import ClaimRecord
from models.engine import TRAITS
from models.judged import Judged, JudgedInstance, JudgedModel, JudgedService
from models.refusal import Refusal
from models.releases.builds import with_builds
from models.releases.tables import Releases
from policy import containers, loads
from policy.plain import Properties, Unread

KNOWN = "berth:plan:Known"


@dataclass(frozen=True)
class Reading:
    """A stack, and what of it could not be read."""

    judged: Judged
    trouble: tuple[Refusal, ...]


def read(resources: Sequence[PolicyResource], releases: Releases) -> Reading:
    """Read a stack's resources. What cannot be read is trouble, never an exception."""
    return _Reader(resources, releases).reading()


class _Claims(dict[tuple[str, str], tuple[PolicyResource, str, ClaimRecord]]):
    """(host, claim's name) → the resource that says it, host and claim."""


class _Reader:
    def __init__(self, resources: Sequence[PolicyResource], releases: Releases) -> None:
        self._resources = resources
        self._releases = releases
        self._trouble: list[Refusal] = []
        self._known = self._read_known()
        declared = self._known.declared
        if declared is not None:
            self._resources = [
                each for each in resources if f"{each.resource_type}::{each.name}" in declared
            ]

    def reading(self) -> Reading:
        facts = self._known
        instances = (*self._instances(), *facts.instances)
        images = {(each.host, each.name): each.image for each in instances}
        models = tuple(self._with_weights(each) for each in self._models(images))
        judged = Judged(
            stack=facts.stack,
            hosts=facts.hosts,
            instances=instances,
            models=models,
            services=tuple(self._with_image(each) for each in facts.services),
            builds=facts.builds,
            plain_config=facts.plain_config,
            releases=with_builds(self._releases, facts.builds.values()),
        )
        return Reading(judged, tuple(self._trouble))

    def _of_type(self, kind: str) -> Iterable[PolicyResource]:
        return (each for each in self._resources if each.resource_type == kind)

    def _read_known(self) -> known.Known:
        for resource in self._of_type(KNOWN):
            try:
                return known.read(Properties(resource.props).text("known"))
            except (Unread, ValueError) as why:
                self._unread(resource, " ".join(str(why).split())[:200])
        return known.Known()

    def _with_image(self, service: JudgedService) -> JudgedService:
        """With the image that its container will really have."""
        for resource in self._of_type(containers.CONTAINER):
            try:
                if containers.service_of(resource) == (service.host, service.name):
                    return replace(service, image=containers.image(resource, self._images()))
            except Unread as why:
                self._unread(resource, str(why))
        return service

    def _images(self) -> dict[str, str]:
        """Id → reference."""
        images: dict[str, str] = {}
        for resource in self._of_type(containers.IMAGE):
            try:
                props = Properties(resource.props)
                images[props.text("imageId")] = props.text("name")
            except Unread:
                continue  # An image that is pulled in this run: its container depends on it.
        return images

    def _instances(self) -> tuple[JudgedInstance, ...]:
        images = self._images()
        units: dict[tuple[str, str], str] = {}
        for resource in self._of_type(containers.COMMAND):
            units |= containers.units(resource)
        found = []
        for resource in self._resources:
            if not containers.is_instance(resource):
                continue
            try:
                found.append(containers.instance(resource, images, units))
            except Unread as why:
                self._unread(resource, str(why))
        return tuple(found)

    def _models(self, images: dict[tuple[str, str], str]) -> Iterable[JudgedModel]:
        claims = _Claims()
        for resource in self._of_type(loads.CLAIMS):
            try:
                for host, record in loads.claimed(resource):
                    claims[host, record.name] = (resource, host, record)
            except Unread as why:
                self._unread(resource, str(why))
        for resource in self._of_type(loads.MODEL):
            try:
                host, record = loads.loaded(resource)
            except Unread as why:
                self._unread(resource, str(why))
                continue
            self._compare(resource, host, record, claims, with_entry=True)
        told: dict[tuple[str, str], dict[str, object]] = {}
        for resource in self._of_type(loads.SERVED):
            try:
                host, record, given = loads.served(resource)
            except Unread as why:
                self._unread(resource, str(why))
                continue
            told[host, record.name] = given
            self._compare(resource, host, record, claims, with_entry=False)
        entries = self._entries()
        for resource, host, record in claims.values():
            entry = entries.get((host, record.entry))
            traits = TRAITS.get(record.engine)
            if entry is None and (traits is None or traits.entry):
                self._unread(resource, f"no repository entry `{record.entry}` on host {host}")
            try:
                image = images.get((host, record.instance), "")
                own = told.get((host, record.name)) if traits and traits.for_life else None
                yield loads.model(host, record, entry or {}, image, own)
            except Unread as why:
                self._unread(resource, str(why))

    def _entries(self) -> dict[tuple[str, str], dict[str, str]]:
        found = {}
        for resource in self._of_type(loads.ENTRY):
            try:
                key, contents = loads.files(resource)
                found[key] = contents
            except Unread as why:
                self._unread(resource, str(why))
        return found

    def _compare(
        self,
        resource: PolicyResource,
        host: str,
        record: ClaimRecord,
        claims: _Claims,
        *,
        with_entry: bool,
    ) -> None:
        """A model is loaded as it is claimed, or its claim says nothing about it."""
        if (host, record.name) not in claims:
            claims[host, record.name] = (resource, host, record)
            self._unread(resource, "it is loaded without a claim")
            return
        claimed = claims[host, record.name][2]
        same = (set(record.gpus), record.instance) == (set(claimed.gpus), claimed.instance)
        if not same or (with_entry and record.entry != claimed.entry):
            self._unread(resource, f"it is loaded otherwise than {record.name} is claimed")

    def _with_weights(self, model: JudgedModel) -> JudgedModel:
        weights = self._known.weights.get(model.host, {}).get(model.weights_name)
        return model if weights is None else replace(model, weights=weights)

    def _unread(self, resource: PolicyResource, why: str) -> None:
        self._trouble.append(
            Refusal(
                f"it cannot be judged: {why}",
                consequence="Nothing says whether it would work. Nothing was touched.",
                fix="declare it by plain values, as Berth's own program does.",
                at=f"{resource.resource_type} {resource.name}",
            )
        )
