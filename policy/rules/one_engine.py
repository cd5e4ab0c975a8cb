"""Exactly one engine for each model of Triton's vLLM backend."""

from __future__ import annotations

from models.rules import one_engine as rule
from policy.stack_policy import stack_policy

one_engine = stack_policy(rule)
