"""An engine is split over just the GPUs that it has, and each gets whole attention heads."""

from __future__ import annotations

from models.rules import parallelism as rule
from policy.stack_policy import stack_policy

parallelism = stack_policy(rule)
