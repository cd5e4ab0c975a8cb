"""The executor that the image's release asks for, where a model spans several GPUs."""

from __future__ import annotations

from models.rules import ray_executor as rule
from policy.stack_policy import stack_policy

ray_executor = stack_policy(rule)
