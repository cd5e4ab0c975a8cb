"""Resources as the engine shows them to a policy, made from what a program declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pulumi_policy import PolicyResource, StackValidationArgs, StackValidationPolicy
from pulumi_policy.policy import PolicyProviderResource
from pulumi_policy.proxy import unknown_checking_proxy

from models.judged import Judged
from models.known import known_of, written
from policy.reading import KNOWN
from tests.resources.recording import Recorder, image_id


def shown(
    kind: str,
    name: str,
    props: Mapping[str, Any],
    *,
    provider: str = "",
    parent: PolicyResource | None = None,
    depends: Mapping[str, list[PolicyResource]] | None = None,
) -> PolicyResource:
    """One resource."""
    by = PolicyProviderResource("pulumi:providers:docker", {}, "", provider) if provider else None
    urn = f"urn:pulumi:test::berth::{kind}::{name}"
    proxied = unknown_checking_proxy(dict(props))
    options = cast("Any", None)
    return PolicyResource(kind, proxied, urn, name, options, by, parent, [], dict(depends or {}))


def known(judged: Judged, *declared: PolicyResource) -> PolicyResource:
    """What is no resource otherwise; with all that a program declares, if it says so."""
    names = [f"{each.resource_type}::{each.name}" for each in declared] or None
    return shown(KNOWN, "dev", {"known": written(known_of(judged, names))})


def all_of(recorder: Recorder) -> list[PolicyResource]:
    """What a program declared. Numbers are floats, as on the wire."""
    found = []
    for each in recorder.resources:
        provider = (each.provider or "").split("::")
        host = each.name.removeprefix("setup-").partition("/")[0]
        found.append(
            shown(
                each.typ,
                each.name,
                {"imageId": image_id(each.name), **_wire(each.inputs)},
                provider=provider[-2] if len(provider) > 2 else "",
                parent=shown("berth:host:HostSetup", host, {"host": host}),
            )
        )
    return found


def violations(policy: StackValidationPolicy, *resources: PolicyResource) -> list[str]:
    """What a policy reports."""
    found: list[str] = []

    def report(message: str, _urn: str | None = None) -> None:
        found.append(message)

    policy.validate(StackValidationArgs(list(resources), {}, {}), report)
    return found


def _wire(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _wire(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_wire(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
