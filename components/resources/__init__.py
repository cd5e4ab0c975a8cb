"""Pulumi components, one per file: from the plan to resources."""
