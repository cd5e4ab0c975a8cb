"""A port of a host is one server's, across all stacks."""

from __future__ import annotations

from models.rules import unique_ports as rule
from policy.stack_policy import stack_policy

unique_ports = stack_policy(rule)
