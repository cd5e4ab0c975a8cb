"""Registers the rules with the engine. Nothing imports this file: it serves and does not return."""

from __future__ import annotations

import sys
from pathlib import Path

# The engine runs a pack with the pack's own directory as its working directory.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pulumi_policy import EnforcementLevel, Policy, PolicyPack

from models.judging import RULES
from policy.readable import readable
from policy.stack_policy import stack_policy

POLICIES: list[Policy] = [readable, *(stack_policy(rule) for rule in RULES)]
PolicyPack("berth", policies=POLICIES, enforcement_level=EnforcementLevel.MANDATORY)
