"""Where an answer ends at a stop sequence, whatever the pieces it came in."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from engines.stop_sequences import StopSequences

# Few letters, so that beginnings of sequences abound.
TEXT = st.text("ab\n", max_size=30)
STOP = st.lists(st.text("ab\n", min_size=1, max_size=5), max_size=3)


def told(pieces: list[str], stop: list[str]) -> tuple[list[str], bool]:
    cutter = StopSequences(stop)
    sent = [cutter.feed(piece) for piece in pieces]
    return [*sent, cutter.end()], cutter.hit


@given(st.lists(TEXT, max_size=8), STOP)
@example(["aab"], ["ab", "aab"])
def test_a_cut_text_never_holds_a_stop_sequence_and_is_a_beginning(
    pieces: list[str], stop: list[str]
) -> None:
    whole = "".join(pieces)
    sent, hit = told(pieces, stop)
    text = "".join(sent)
    assert whole.startswith(text)
    assert not any(one in text for one in stop)
    assert hit == any(one in whole for one in stop)
    if not hit:
        assert text == whole


@given(TEXT, STOP.filter(lambda stop: len(stop) == 1), st.lists(st.integers(0, 30), max_size=6))
def test_how_the_text_is_cut_into_pieces_changes_nothing(
    whole: str, stop: list[str], cuts: list[int]
) -> None:
    places = sorted({at % (len(whole) + 1) for at in cuts})
    pieces = [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]
    assert "".join(told(pieces, stop)[0]) == whole.split(stop[0])[0]


def test_only_what_may_become_a_stop_sequence_is_held_back() -> None:
    cutter = StopSequences(["END"])
    assert cutter.feed("one E") == "one "
    assert cutter.feed("ast") == "East"
    assert cutter.feed("EN") == ""
    assert cutter.feed("D of it") == ""
    assert cutter.hit
    assert cutter.end() == ""


def test_without_stop_sequences_everything_passes_at_once() -> None:
    assert StopSequences([]).feed("any") == "any"
