"""Server-sent events, however the bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.sse import SseReader, TooLargeError

DATA = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)


def cut(content: bytes, cuts: list[int]) -> list[bytes]:
    """`content` in pieces, cut at these places."""
    places = sorted({at % (len(content) + 1) for at in cuts})
    return [content[a:b] for a, b in zip([0, *places], [*places, len(content)], strict=True)]


@given(
    st.lists(st.lists(DATA, min_size=1, max_size=3), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 10**6), max_size=12),
)
def test_any_cutting_and_line_end_gives_the_same_events(
    events: list[list[str]], end: str, cuts: list[int]
) -> None:
    content = ": a comment" + end + end
    for lines in events:
        content += "event: token" + end + "".join(f"data: {line}{end}" for line in lines) + end
    reader = SseReader()
    # A carriage return at the very end may be half of a line's end: the next byte settles it.
    found = [data for piece in cut((content + ":").encode(), cuts) for data in reader.feed(piece)]
    assert found == ["\n".join(lines) for lines in events]


def test_an_event_that_is_not_finished_is_none() -> None:
    reader = SseReader()
    assert reader.feed(b"data: whole\n\ndata: half\n") == ["whole"]


def test_a_field_without_a_space_and_one_without_a_value_are_read() -> None:
    assert SseReader().feed(b"data:a\ndata\ndata:  b\n\n") == ["a\n\n b"]


def test_an_event_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.sse.LARGEST", 100)
    reader = SseReader()
    with pytest.raises(TooLargeError):
        [reader.feed(b"data: 0123456789\n") for _ in range(20)]
