"""Weights and model repository are only read by servers."""

from __future__ import annotations

from models.rules import read_only_weights as rule
from policy.stack_policy import stack_policy

read_only_weights = stack_policy(rule)
