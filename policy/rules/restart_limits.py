"""A unit is restarted when its server ends, and given up when that does not help."""

from __future__ import annotations

from models.rules import restart_limits as rule
from policy.stack_policy import stack_policy

restart_limits = stack_policy(rule)
