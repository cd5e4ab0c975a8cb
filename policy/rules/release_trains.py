"""An image that can run its models, on a driver that can run the image: `models.releases`."""

from __future__ import annotations

from models.rules import release_trains as rule
from policy.stack_policy import stack_policy

release_trains = stack_policy(rule)
