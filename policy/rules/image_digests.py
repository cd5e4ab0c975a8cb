"""Images by digest, except where a host builds its own: what was reviewed is what runs."""

from __future__ import annotations

from models.rules import image_digests as rule
from policy.stack_policy import stack_policy

image_digests = stack_policy(rule)
