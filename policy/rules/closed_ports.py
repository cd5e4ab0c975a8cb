"""Nothing of a server is open beyond its host's loopback without a key."""

from __future__ import annotations

from models.rules import closed_ports as rule
from policy.stack_policy import stack_policy

closed_ports = stack_policy(rule)
