"""A GPU is one model's: refuses a stack in which two models claim the same one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
)

from models.overlap import Claim, overlaps

MODEL = "pulumi-python:dynamic/berth:TritonModel"


def claims(resources: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Claim]:
    """The claims of all models, from resources as (type, properties)."""
    return [
        Claim(
            host=str(props["host"]),
            gpu=str(gpu),
            name=str(props["owner"]),
            owner=str(props["owner"]),
            mib=int(props["claim_mib"]),
        )
        for kind, props in resources
        if kind == MODEL
        for gpu in props["gpus"]
    ]


def validate(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report each GPU that more than one model claims."""
    resources = [(resource.resource_type, resource.props) for resource in args.resources]
    for overlap in overlaps(claims(resources)):
        report(str(overlap.refusal()), None)


gpu_overlap = StackValidationPolicy(
    name="gpu-overlap",
    description="Each GPU is claimed by one model only.",
    enforcement_level=EnforcementLevel.MANDATORY,
    validate=validate,
)
