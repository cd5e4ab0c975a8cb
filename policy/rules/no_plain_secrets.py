"""No secret in clear: in a stack's config, an engine's arguments, a container's environment."""

from __future__ import annotations

from models.rules import no_plain_secrets as rule
from policy.stack_policy import stack_policy

no_plain_secrets = stack_policy(rule)
