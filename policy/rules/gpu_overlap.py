"""A GPU is one model's, unless all on it are shared and their budgets fit: `models.overlap`."""

from __future__ import annotations

from models.rules import gpu_overlap as rule
from policy.stack_policy import stack_policy

gpu_overlap = stack_policy(rule)
