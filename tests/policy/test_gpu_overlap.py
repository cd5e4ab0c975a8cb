"""The pack's rule for GPU overlap, on the resources that the engine shows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from policy.rules.gpu_overlap import MODEL, gpu_overlap, validate


def model(owner: str, *gpus: str, host: str = "alpha", kind: str = MODEL) -> SimpleNamespace:
    props = {"host": host, "gpus": list(gpus), "claim_mib": 20730.0, "owner": owner}
    return SimpleNamespace(resource_type=kind, props=props)


def violations(*resources: SimpleNamespace) -> list[str]:
    found: list[str] = []
    args: Any = SimpleNamespace(resources=list(resources))

    def report(message: str, _urn: str | None = None) -> None:
        found.append(message)

    validate(args, report)
    return found


def test_two_models_on_one_gpu_are_a_violation_that_names_both() -> None:
    (message,) = violations(model("architect", "GPU-0", "GPU-1"), model("sentry", "GPU-1"))
    assert "GPU-1 is claimed by architect: 20730 MiB and by sentry: 20730 MiB" in message
    assert "Fix: " in message


def test_models_on_different_gpus_or_hosts_pass() -> None:
    assert not violations(
        model("architect", "GPU-0", "GPU-1"),
        model("sentry", "GPU-2"),
        model("auditor", "GPU-0", host="beta"),
    )


def test_other_resources_are_none_of_its_business() -> None:
    assert not violations(model("a", "GPU-0"), model("b", "GPU-0", kind="docker:index:Container"))


def test_the_rule_is_mandatory() -> None:
    assert gpu_overlap.enforcement_level is not None
    assert gpu_overlap.enforcement_level.value == "mandatory"
