"""A refusal: what Berth says instead of doing something that cannot work."""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818  (it is an answer, not a fault of ours)
    """Cause, consequence and fix, for the person who has to mend it.

    Attributes:
        cause: what is wrong, with the values that are wrong.
        consequence: what it would lead to, or what was therefore not done.
        fix: what to change or run.
        at: where it stands: a path into the config (`berth:instances.triton@0.gpus[1]`), a host or
            a model; empty where the cause says it.

    `str()` gives one to three lines, ready to print. It holds no secret.
    """

    def __init__(self, cause: str, *, consequence: str = "", fix: str = "", at: str = "") -> None:
        self.cause = cause
        self.consequence = consequence
        self.fix = fix
        self.at = at
        super().__init__(cause)

    def __str__(self) -> str:
        lines = [f"{self.at}: {self.cause}" if self.at else self.cause]
        if self.consequence:
            lines.append(f"  {self.consequence}")
        if self.fix:
            lines.append(f"  Fix: {self.fix}")
        return "\n".join(lines)


class Refusals(Refusal):
    """Several refusals at once, so that a person mends them all in one go."""

    def __init__(self, refusals: list[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("\n".join(str(refusal) for refusal in refusals))
