"""A person reads at once how old facts are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from models.facts_age import age, dated, is_old, taken

TAKEN = "2026-11-18T10:20:00Z"
THEN = datetime(2026, 11, 18, 10, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("later", "says"),
    [
        (timedelta(seconds=59), "just taken"),
        (timedelta(seconds=60), "1 minute old"),
        (timedelta(hours=2, minutes=59), "2 hours old"),
        (timedelta(days=1), "1 day old"),
        (timedelta(days=3, hours=23), "3 days old"),
        (timedelta(days=-1), "just taken"),
    ],
)
def test_an_age_is_told_in_the_largest_unit_that_it_fills(later: timedelta, says: str) -> None:
    assert age(TAKEN, THEN + later) == says


def test_facts_are_dated_in_utc_whatever_zone_they_were_written_in() -> None:
    now = THEN + timedelta(days=3)
    assert dated(TAKEN, now) == "facts of 2026-11-18 10:20 UTC, 3 days old"
    assert dated("2026-11-18T12:20:00+02:00", now) == dated(TAKEN, now)
    assert dated("2026-11-18T10:20:00", now) == dated(TAKEN, now)


def test_facts_are_old_after_a_fortnight() -> None:
    assert not is_old(TAKEN, THEN + timedelta(days=14))
    assert is_old(TAKEN, THEN + timedelta(days=14, seconds=1))


def test_what_is_no_moment_is_not_taken_for_one() -> None:
    with pytest.raises(ValueError, match="yesterday"):
        taken("yesterday")
