"""What cannot be read cannot be judged, so it is refused."""

from __future__ import annotations

from pulumi_policy import (
    EnforcementLevel,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
)

from policy.stack_policy import reading_of


def validate(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report each resource of Berth's that says less than the rules have to know."""
    for refusal in reading_of(args).trouble:
        report(str(refusal), None)


readable = StackValidationPolicy(
    name="readable",
    description="Whatever the rules look at is there before anything is made, as a plain value.",
    enforcement_level=EnforcementLevel.MANDATORY,
    validate=validate,
    remediation_steps="Declare instances and models by plain values, as Berth's own program does.",
)
