"""Properties of resources as plain values, whatever a program put there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pulumi_policy.proxy import UnknownValueError

DEEPEST = 32


class Unread(Exception):  # noqa: N818 (its words are the answer)
    """A property is not there, not known yet, or of another kind than it should be."""


class _Unknown:
    def __repr__(self) -> str:
        return "not known before it is made"


UNKNOWN = _Unknown()
"""Stands for what only the engine will know. The SDK would downgrade a policy that touches it."""


def plain(value: Any, depth: int = 0) -> Any:
    """`value` with its maps and lists copied, and `UNKNOWN` for what is not known."""
    if depth > DEEPEST:
        return None
    if isinstance(value, Mapping):
        return {str(key): _of(value, key, depth) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_of(value, number, depth) for number in range(len(value))]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _of(container: Any, key: Any, depth: int) -> Any:
    try:
        return plain(container[key], depth + 1)
    except UnknownValueError:
        return UNKNOWN


class Properties:
    """A map of properties, each asked for as what it should be."""

    def __init__(self, values: Any) -> None:
        """Copies only what is asked for."""
        self._values = values if isinstance(values, Mapping) else {}

    def value(self, key: str) -> Any:
        """A property; None if it is not there."""
        try:  # `in` touches the value too, and so raises where it is unknown.
            found = _of(self._values, key, 0)
        except KeyError:
            return None
        if found is UNKNOWN:
            raise Unread(f"`{key}` is {UNKNOWN!r}")
        return found

    def unknown(self, key: str) -> bool:
        """Whether only the engine will know it."""
        try:
            return _of(self._values, key, 0) is UNKNOWN
        except KeyError:
            return False

    def text(self, key: str, otherwise: str | None = None) -> str:
        """Text; `otherwise` where it is not there."""
        return str(self._typed(key, str, "text", otherwise))

    def whole(self, key: str) -> int:
        """A whole number."""
        found = self._typed(key, int, "whole number", None)
        if isinstance(found, bool):
            raise Unread(f"`{key}` is no whole number")
        return int(found)

    def flag(self, key: str) -> bool:
        """True or false; false where it is not there."""
        return bool(self._typed(key, bool, "`true` or `false`", False))

    def maps(self, key: str) -> list[Properties]:
        """A list of maps; empty where it is not there."""
        found = self._typed(key, list, "list", [])
        if not all(isinstance(each, Mapping) for each in found):
            raise Unread(f"`{key}` is no list of maps")
        return [Properties(each) for each in found]

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty where it is not there."""
        found = self._typed(key, list, "list", [])
        if not all(isinstance(each, str) for each in found):
            raise Unread(f"`{key}` is no list of texts")
        return list(found)

    def _typed(self, key: str, kind: type, named: str, otherwise: Any) -> Any:
        found = self.value(key)
        if found is None:
            if otherwise is None:
                raise Unread(f"`{key}` is not there")
            return otherwise
        if not isinstance(found, kind):
            raise Unread(f"`{key}` is no {named}")
        return found
