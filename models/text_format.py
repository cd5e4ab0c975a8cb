"""Protocol buffers' text format, as far as a `config.pbtxt` needs it: names and values, nested.

Field names are not checked against a schema: Triton does that when it loads the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

DEEPEST = 64
"""Levels of nesting; Triton's own configuration needs five."""

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<mark>[{}<>\[\]:,;])
      | (?P<word>[^\s{}<>\[\]:,;\#"']+)""",
    re.VERBOSE,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Unreadable(ValueError):  # noqa: N818 (its words are the answer)
    """Not text format; says why, with the line."""


@dataclass(frozen=True)
class Message:
    """Fields in the order in which they are written; a list counts as its field repeated."""

    fields: tuple[tuple[str, Value], ...] = ()

    def all(self, name: str) -> list[Value]:
        """The values of a field."""
        return [value for field, value in self.fields if field == name]


Value = str | Message
"""A scalar as it is written, without its quotes; or a message."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


def parse(text: str) -> Message:
    """Read a message.

    Raises:
        Unreadable: it is none.
    """
    return _Reader(text).message("", 0)


def _tokens(text: str) -> Iterator[_Token]:
    line, place = 1, 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise Unreadable(f"line {line}: a string is not closed")
        if found.lastgroup != "space":
            yield _Token(str(found.lastgroup), found[0], line)
        line += found[0].count("\n")
        place = found.end()
    yield _Token("end", "", line)


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens)

    def message(self, end: str, depth: int) -> Message:
        if depth > DEEPEST:
            raise self._error(f"nested deeper than {DEEPEST} levels")
        fields: list[tuple[str, Value]] = []
        while self._next.text != end or (self._next.kind == "end") != (end == ""):
            if self._is(",", ";"):
                self._take()
                continue
            name = self._name()
            fields += [(name, value) for value in self._values(depth)]
        if end:
            self._take()
        return Message(tuple(fields))

    def _name(self) -> str:
        if self._is("["):  # an extension's
            name = ""
            while not self._is("]"):
                name += self._take().text
            self._take()
            return name
        token = self._take()
        if token.kind != "word" or not _NAME.fullmatch(token.text):
            raise Unreadable(f"line {token.line}: {_shown(token)} is no field's name")
        return token.text

    def _values(self, depth: int) -> list[Value]:
        scalar = self._is(":")
        if scalar:
            self._take()
        if not self._is("["):
            return [self._value(depth, scalar)]
        self._take()
        values: list[Value] = []
        while not self._is("]"):
            if self._is(","):
                self._take()
                continue
            values.append(self._value(depth, scalar))
        self._take()
        return values

    def _value(self, depth: int, scalar: bool) -> Value:
        for start, end in (("{", "}"), ("<", ">")):
            if self._is(start):
                self._take()
                return self.message(end, depth + 1)
        if not scalar or self._next.kind not in ("string", "word"):
            wanted = "a value" if scalar else "`:` or `{`"
            raise self._error(f"{wanted} should stand where {_shown(self._next)} does")
        if self._next.kind == "word":
            return self._take().text
        parts = []
        while self._next.kind == "string":
            parts.append(re.sub(r"\\(.)", r"\1", self._take().text[1:-1], flags=re.DOTALL))
        return "".join(parts)

    def _is(self, *marks: str) -> bool:
        return self._next.kind == "mark" and self._next.text in marks

    def _take(self) -> _Token:
        taken = self._next
        if taken.kind == "end":
            raise self._error("it ends too early")
        self._next = next(self._tokens)
        return taken

    def _error(self, why: str) -> Unreadable:
        return Unreadable(f"line {self._next.line}: {why}")


def _shown(token: _Token) -> str:
    return f"`{token.text:.40}`" if token.text else "the end"
