"""All rules, asked of one stack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from models.finding import Finding
from models.judged import Judged
from models.refusal import Refusal
from models.rules import (
    closed_ports,
    engine_image,
    gpu_exists,
    gpu_overlap,
    image_digests,
    memory_fit,
    no_plain_secrets,
    one_engine,
    parallelism,
    ray_executor,
    read_only_weights,
    release_trains,
    restart_limits,
    unique_names,
    unique_ports,
)


class Rule(Protocol):
    """A module of `models.rules`."""

    NAME: str
    DESCRIPTION: str
    REMEDY: str

    def findings(self, judged: Judged) -> list[Finding]:
        """What it finds; nothing where all is well. It never raises."""


RULES: tuple[Rule, ...] = (
    gpu_exists,
    gpu_overlap,
    parallelism,
    memory_fit,
    one_engine,
    ray_executor,
    engine_image,
    release_trains,
    image_digests,
    closed_ports,
    unique_ports,
    unique_names,
    no_plain_secrets,
    read_only_weights,
    restart_limits,
)

WaysOut = Callable[[Collection[str]], Sequence[str]]


def judge(judged: Judged, ways_out: WaysOut | None = None) -> tuple[list[Refusal], list[Refusal]]:
    """What is wrong with a stack, and what is not known about it.

    Args:
        judged: the stack.
        ways_out: names of claims that cannot be met → changes of the plan that are known to fit;
            they take the place of a rule's own advice.

    Returns:
        The refusals, and the warnings, each once.
    """
    refusals: dict[str, Refusal] = {}
    warnings: dict[str, Refusal] = {}
    for rule in RULES:
        for finding in rule.findings(judged):
            refusal = finding.refusal
            if finding.troubled and ways_out is not None:
                refusal.fix = " Or: ".join(ways_out(finding.troubled)) or refusal.fix
            (refusals if finding.certain else warnings).setdefault(str(refusal), refusal)
    return list(refusals.values()), list(warnings.values())
