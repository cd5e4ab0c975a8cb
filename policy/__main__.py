"""Registers the rules with the engine. Nothing imports this file: it serves and does not return."""

from __future__ import annotations

import sys
from pathlib import Path

# The engine runs a pack with the pack's own directory as its working directory.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pulumi_policy import EnforcementLevel, Policy, PolicyPack

from policy.rules.closed_ports import closed_ports
from policy.rules.gpu_exists import gpu_exists
from policy.rules.gpu_overlap import gpu_overlap
from policy.rules.image_digests import image_digests
from policy.rules.memory_fit import memory_fit
from policy.rules.no_plain_secrets import no_plain_secrets
from policy.rules.one_engine import one_engine
from policy.rules.parallelism import parallelism
from policy.rules.ray_executor import ray_executor
from policy.rules.read_only_weights import read_only_weights
from policy.rules.readable import readable
from policy.rules.release_trains import release_trains
from policy.rules.restart_limits import restart_limits
from policy.rules.unique_names import unique_names
from policy.rules.unique_ports import unique_ports

POLICIES: list[Policy] = [
    readable,
    gpu_exists,
    gpu_overlap,
    parallelism,
    memory_fit,
    one_engine,
    ray_executor,
    release_trains,
    image_digests,
    closed_ports,
    unique_ports,
    unique_names,
    no_plain_secrets,
    read_only_weights,
    restart_limits,
]
PolicyPack("berth", policies=POLICIES, enforcement_level=EnforcementLevel.MANDATORY)
