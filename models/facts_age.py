"""How old a host's facts are, in words: a plan judged by old ones may still be wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

OLD = timedelta(days=14)
"""Facts older than this are told as a warning: drivers, cards and other stacks change."""
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"))


def taken(text: str) -> datetime:
    """The moment that an inventory names, ISO 8601; one without a zone is UTC.

    Raises:
        ValueError: it is no such moment.
    """
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def age(taken_at: str, now: datetime) -> str:
    """`3 days old`, by the largest unit that there is one of.

    Args:
        taken_at: as `taken` reads it.
        now: with a zone. A moment before `taken_at` is two clocks that differ: then just taken.
    """
    seconds = (now - taken(taken_at)).total_seconds()
    for length, unit in _UNITS:
        number = int(seconds // length)
        if number >= 1:
            return f"{number} {unit}{'s' if number > 1 else ''} old"
    return "just taken"


def dated(taken_at: str, now: datetime) -> str:
    """`facts of 2026-11-18 10:20 UTC, 3 days old`."""
    return f"facts of {taken(taken_at):%Y-%m-%d %H:%M} UTC, {age(taken_at, now)}"


def is_old(taken_at: str, now: datetime) -> bool:
    """Whether more than `OLD` has passed."""
    return now - taken(taken_at) > OLD
