"""Versions as NVIDIA, vLLM and TensorRT-LLM write them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.releases.version import admits_none_after, at_least, version


def test_releases_are_ordered_as_they_came_out() -> None:
    order = ["0.6.3", "0.6.3.post1", "0.9.0rc1", "0.9.0", "0.10.1.1", "0.19.0", "1.0.3.2510"]
    for older, newer in pairwise(order):
        assert at_least(newer, older)
        assert not at_least(older, newer)


def test_what_a_builder_adds_makes_no_other_release() -> None:
    assert version("0.17.1+nv26.3") == version("0.17.1")


@pytest.mark.parametrize("text", ["", "latest", "580.x", "v", "1..2"])
def test_what_is_no_version_is_never_new_enough(text: str) -> None:
    assert version(text) is None
    assert not at_least(text, "0")


@pytest.mark.parametrize(
    ("specifiers", "newest", "none"),
    [
        (">=4.56.0,<5", "5.4.0", True),
        (">=4.56.0,<5", "4.57.0", False),
        (">=4.56.0", "5.4.0", False),
        (">=4.56.0,!=5.0.*,!=5.5.0", "5.4.0", False),
        ("<=5.3.0", "5.3.0", True),
        ("<9,<5", "5.4.0", True),
    ],
)
def test_a_range_is_too_old_only_if_all_of_it_is(specifiers: str, newest: str, none: bool) -> None:
    assert admits_none_after(specifiers, newest) is none


@given(st.text())
def test_any_text_is_a_version_or_none(text: str) -> None:
    found = version(text)
    assert found is None or at_least(text, str(found))
