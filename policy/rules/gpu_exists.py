"""A GPU that is asked for is there, on the host where it is asked for."""

from __future__ import annotations

from models.rules import gpu_exists as rule
from policy.stack_policy import stack_policy

gpu_exists = stack_policy(rule)
