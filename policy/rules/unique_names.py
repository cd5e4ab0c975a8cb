"""Names that clients call, and names of demos, mean one thing on a host."""

from __future__ import annotations

from models.rules import unique_names as rule
from policy.stack_policy import stack_policy

unique_names = stack_policy(rule)
