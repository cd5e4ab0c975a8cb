"""What a rule finds wrong, or cannot tell."""

from __future__ import annotations

from dataclasses import dataclass

from models.refusal import Refusal

UNTOUCHED = "Nothing was touched."


@dataclass(frozen=True)
class Finding:
    """One thing that a rule has to say."""

    refusal: Refusal
    certain: bool = True
    """Whether it is wrong, and so refused; otherwise nothing tells yet, and that is a warning."""
    troubled: tuple[str, ...] = ()
    """Names of the claims that cannot be met, where changing one of them is the way out."""


def wrong(
    cause: str, *, consequence: str, fix: str, at: str, troubled: tuple[str, ...] = ()
) -> Finding:
    """Something that cannot work."""
    said = f"{consequence} {UNTOUCHED}"
    return Finding(Refusal(cause, consequence=said, fix=fix, at=at), troubled=troubled)


def unsure(cause: str, *, consequence: str, fix: str, at: str) -> Finding:
    """Something that is not known. `fix` names what would settle it."""
    return Finding(Refusal(cause, consequence=consequence, fix=fix, at=at), certain=False)
