"""The error that a person reads."""

from __future__ import annotations


class ToolchainError(Exception):
    """Cause, consequence and fix, in one to three lines; shown without a traceback."""
