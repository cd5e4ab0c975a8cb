"""Registers the rules with the engine. Nothing imports this file: it serves and does not return."""

from __future__ import annotations

import sys
from pathlib import Path

# The engine runs a pack with the pack's own directory as its working directory.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pulumi_policy import EnforcementLevel, PolicyPack

from policy.rules.gpu_overlap import gpu_overlap

PolicyPack("berth", policies=[gpu_overlap], enforcement_level=EnforcementLevel.MANDATORY)
