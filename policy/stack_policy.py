"""A rule as a policy of the whole stack."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pulumi_policy import (
    EnforcementLevel,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
)

from config.releases import load_releases
from models.judging import Rule
from models.releases.tables import Releases
from policy.reading import Reading, read

PROJECT = Path(__file__).resolve().parents[1]


@lru_cache(maxsize=1)
def releases() -> Releases:
    """The tables beside the pack."""
    return load_releases(PROJECT)


def reading_of(args: StackValidationArgs) -> Reading:
    """The stack that a policy is shown."""
    return read(args.resources, releases())


def stack_policy(rule: Rule) -> StackValidationPolicy:
    """Refuses what the rule is certain of. What it cannot tell is the program's to warn of."""

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        for finding in rule.findings(reading_of(args).judged):
            if finding.certain:
                report(str(finding.refusal), None)

    return StackValidationPolicy(
        name=rule.NAME,
        description=rule.DESCRIPTION,
        enforcement_level=EnforcementLevel.MANDATORY,
        validate=validate,
        remediation_steps=rule.REMEDY,
    )
