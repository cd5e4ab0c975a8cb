"""Server-sent events out of bytes, however they are cut."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LARGEST = 16 * 2**20
"""Bytes of one event; more is no event but a fault (WHATWG's standard sets no bound)."""
_LINE_END = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)


class TooLargeError(Exception):
    """An event that does not end."""


@dataclass
class SseReader:
    """Feed it what arrives; it gives the `data` of each event that is complete.

    Follows the WHATWG HTML standard's section on server-sent events, but for `id` and `retry`,
    which no engine sends. A carriage return at the very end waits for what follows it.
    """

    _rest: bytes = b""
    _data: list[bytes] = field(default_factory=list)

    def feed(self, arrived: bytes) -> list[str]:
        """The events that `arrived` completes.

        Raises:
            TooLargeError: a line is longer than LARGEST, or an event is.
        """
        *lines, self._rest = _LINE_END.split(self._rest + arrived)
        found = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif line == b"data":
                self._data.append(b"")
            elif not line and self._data:
                found.append(b"\n".join(self._data).decode(errors="replace"))
                self._data = []
        if len(self._rest) + sum(map(len, self._data)) > LARGEST:
            raise TooLargeError
        return found
