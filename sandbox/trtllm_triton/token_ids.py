"""Token ids that can be turned back into text: bytes, of which a token's first is marked."""

from __future__ import annotations

import re
from collections.abc import Iterable

FIRST = 1000
"""Added to the first byte of a token: counting tokens is counting these."""
BOS = 2000
END = 2001
"""Ends an answer; the tokenizer's, which the engine has to be told."""


def encode(text: str, bos: bool = False) -> list[int]:
    """
    >>> decode(encode("a quay", bos=True)), count(encode("a quay", bos=True))
    ('a quay', 3)
    """
    ids = [BOS] if bos else []
    for piece in re.findall(r"\s*\w+|\s*[^\w\s]|\s+", text):
        first, *others = piece.encode()
        ids += [FIRST + first, *others]
    return ids


def decode(ids: Iterable[int]) -> str:
    """Ids below 0 are padding."""
    known = [i for i in ids if i >= 0 and i != BOS]
    return bytes(i - FIRST if i >= FIRST else i for i in known).decode(errors="replace")


def count(ids: Iterable[int]) -> int:
    return sum(i >= FIRST for i in ids)


def pack_words(words: Iterable[str]) -> list[list[int]]:
    """TensorRT-LLM's list of words: all ids in the first row, each word's end in the second."""
    ids: list[int] = []
    ends: list[int] = []
    for word in words:
        ids += encode(word)
        ends.append(len(ids))
    ids, ends = ids or [0], ends or [-1]
    return [ids, ends + [-1] * (len(ids) - len(ends))]


def unpack_words(rows: list[list[int]]) -> list[str]:
    """
    >>> unpack_words(pack_words(["stop", "the end"]))
    ['stop', 'the end']
    """
    ids, ends = rows
    words, start = [], 0
    for end in (e for e in ends if e >= 0):
        words.append(decode(ids[start:end]))
        start = end
    return words
