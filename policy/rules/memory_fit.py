"""A model's weights, KV cache and overhead fit into what its engine may take: `models.memory`."""

from __future__ import annotations

from models.rules import memory_fit as rule
from policy.stack_policy import stack_policy

memory_fit = stack_policy(rule)
