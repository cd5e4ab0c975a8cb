"""Nested plain data as one scalar a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from models.validation import path


def flat(value: object, at: str) -> Iterator[tuple[str, object]]:
    """(path, scalar) of all that `value` holds, paths as refusals write them.

    Args:
        value: maps, lists and scalars, as YAML or JSON gives them.
        at: where it stands: `berth:`, `catalog/x.yaml`.
    """
    waiting: list[tuple[tuple[int | str, ...], object]] = [((), value)]
    while waiting:
        loc, each = waiting.pop()
        if isinstance(each, Mapping):
            waiting += [((*loc, str(key)), below) for key, below in each.items()][::-1]
        elif isinstance(each, Sequence) and not isinstance(each, str | bytes):
            waiting += [((*loc, number), below) for number, below in enumerate(each)][::-1]
        else:
            yield path(at, loc), each
