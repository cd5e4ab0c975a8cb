"""Ends a text at the first stop sequence, across the pieces that it comes in."""

from __future__ import annotations

from collections.abc import Iterable


class StopSequences:
    """Feed it deltas; it gives what is safe to send.

    Needed where an engine compares tokens rather than text (TensorRT-LLM's `stop_words` misses a
    sequence that begins inside a token) or has no stop sequences at all. What may still become a
    stop sequence is held back, never more than the longest one less a character.
    """

    def __init__(self, stop: Iterable[str]) -> None:
        self._stop = tuple(text for text in stop if text)
        self._held = ""
        self.hit = False

    def feed(self, delta: str) -> str:
        """The text that can be sent now. After a hit: nothing."""
        if self.hit:
            return ""
        if not self._stop:
            return delta
        text = self._held + delta
        found = [at for stop in self._stop if (at := text.find(stop)) >= 0]
        if found:
            self.hit = True
            self._held = ""
            return text[: min(found)]
        keep = max(self._may_begin(text, stop) for stop in self._stop)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def take_back(self, length: int) -> bool:
        """Forget the last characters that were fed; False where they were sent already."""
        if length > len(self._held):
            return False
        self._held = self._held[: len(self._held) - length]
        return True

    def end(self) -> str:
        """What was held back, once nothing more comes."""
        held, self._held = self._held, ""
        return held

    @staticmethod
    def _may_begin(text: str, stop: str) -> int:
        """How many of the last characters are the beginning of `stop`."""
        longest = min(len(text), len(stop) - 1)
        return next((n for n in range(longest, 0, -1) if stop.startswith(text[-n:])), 0)
