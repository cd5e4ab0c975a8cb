"""What a Dockerfile's result is made from."""

from __future__ import annotations

import pytest

from models.dockerfile import Unresolved, images

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("text", "args", "found"),
    [
        ("FROM a:1", {}, ("a:1",)),
        (f"from --platform=linux/amd64 a:1@{DIGEST} as x\nFROM x", {}, (f"a:1@{DIGEST}",)),
        ("ARG BASE\nFROM ${BASE}", {"BASE": "b:2"}, ("b:2",)),
        ('ARG BASE="b:1"\nFROM $BASE', {}, ("b:1",)),
        ("ARG BASE=b:1\nFROM $BASE", {"BASE": "b:2"}, ("b:2",)),
        ("ARG TAG=1 NAME=n\nARG BASE=$NAME:$TAG\nFROM ${BASE}", {}, ("n:1",)),
        ("ARG TAG\nFROM a:${TAG:-3}", {}, ("a:3",)),
        ("ARG TAG\nFROM a${TAG:+:given}", {"TAG": "x"}, ("a:given",)),
        ("FROM scratch\nCOPY f /", {}, ()),
        ("FROM a:1 AS one\nFROM b:2\nCOPY --from=one / /\nCOPY --from=0 / /", {}, ("a:1", "b:2")),
        ("FROM a:1\nCOPY --chown=1 --from=c:3 /x /y", {}, ("a:1", "c:3")),
        ("FROM a:1\nRUN --mount=type=bind,from=d:4,target=/d ls", {}, ("a:1", "d:4")),
        ("# syntax = docker/dockerfile:1\nFROM a:1", {}, ("docker/dockerfile:1", "a:1")),
        ("# a word\n# syntax=no/directive:1\nFROM a:1", {}, ("a:1",)),
        ("FROM \\\n  # why\n  a:1\nRUN echo \\\nFROM b:2", {}, ("a:1",)),
        ("FROM a:1\nRUN <<END\nFROM b:2\nEND\nRUN true", {}, ("a:1",)),
    ],
)
def test_images_from_elsewhere_are_found(
    text: str, args: dict[str, str], found: tuple[str, ...]
) -> None:
    assert images(text, args) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ARG BASE\nFROM ${BASE}", "the argument `BASE` has no value"),
        ("FROM ${BASE}", "the argument `BASE` has no value"),
        ("FROM a:1\nARG X=b:1\nCOPY --from=$X / /", "the argument `X` has no value"),
        ("ARG BASE=\nFROM ${BASE}", "is empty"),
        ("FROM a b c d", "names no image"),
        ("RUN true", "has no `FROM`"),
        ("", "has no `FROM`"),
    ],
)
def test_what_has_no_value_is_not_guessed(text: str, why: str) -> None:
    with pytest.raises(Unresolved, match=why.replace("$", r"\$")):
        images(text, {})
