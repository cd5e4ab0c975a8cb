"""Which images a Dockerfile is made from: what has to be pinned for its result to be pinned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_SYNTAX = re.compile(r"#\s*syntax\s*=\s*(\S+)", re.IGNORECASE)
_DIRECTIVE = re.compile(r"#\s*\w+\s*=")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?:(:?[-+])([^}]*))?\}|(\w+))")
_FROM = re.compile(r"(?:--\S+\s+)*(\S+)(?:\s+as\s+(\S+))?\s*", re.IGNORECASE)
_OTHER_STAGE = re.compile(r"(?:--from=|--mount=\S*?\bfrom=)([^\s,]+)")
NOTHING = "scratch"


class Unresolved(Exception):  # noqa: N818 (its words are the answer)
    """An image's name holds a variable that nothing gives a value."""


def images(text: str, args: Mapping[str, str]) -> tuple[str, ...]:
    """Images from elsewhere, in the order of their first use; neither stages nor `scratch`.

    What counts is what `FROM`, `COPY --from`, `RUN --mount=from` and the `syntax` directive name
    (Dockerfile reference). Variables there are `ARG`s before the first `FROM`.

    Args:
        text: the Dockerfile.
        args: build arguments.

    Raises:
        Unresolved: a variable in an image's name has no value, or there is no `FROM`.
    """
    found: dict[str, None] = {}
    stages: list[str] = []
    known: dict[str, str] = {}
    if frontend := _frontend(text):
        found[frontend] = None
    for word, rest in _instructions(text):
        if word == "ARG" and not stages:
            for name, equals, default in (each.partition("=") for each in rest.split()):
                if name in args:
                    known[name] = args[name]
                elif equals:
                    known[name] = _substituted(default.strip("\"'"), known)
        elif word == "FROM":
            said = _FROM.fullmatch(rest)
            if said is None:
                raise Unresolved(f"`FROM {rest}` names no image")
            image = _filled(said[1], known)
            if image.lower() not in (NOTHING, *stages):
                found[image] = None
            stages.append((said[2] or str(len(stages))).lower())
        else:
            for name in _OTHER_STAGE.findall(rest):
                numbered = name.isdigit() and int(name) < len(stages)
                if name.lower() not in stages and not numbered:
                    found[_filled(name, known)] = None
    if not stages:
        raise Unresolved("it has no `FROM`")
    return tuple(found)


def _frontend(text: str) -> str:
    for line in text.splitlines():
        if said := _SYNTAX.match(line.strip()):
            return said[1]
        if not _DIRECTIVE.match(line.strip()):
            break
    return ""


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """(upper-case word, the rest), continued lines joined; comments and heredocs left out."""
    lines = iter(text.splitlines())
    joined = ""
    for line in lines:
        if line.lstrip().startswith("#") or (joined and not line.strip()):
            continue
        joined += line.strip()
        if joined.endswith("\\"):
            joined = joined[:-1] + " "
            continue
        word, _, rest = joined.strip().partition(" ")
        joined = ""
        if word:
            for _, end in _HEREDOC.findall(rest) if word.upper() in ("RUN", "COPY", "ADD") else ():
                for inner in lines:
                    if inner.strip() == end:
                        break
            yield word.upper(), rest.strip()


def _filled(text: str, known: Mapping[str, str]) -> str:
    filled = _substituted(text, known)
    if not filled:
        raise Unresolved(f"`{text}` is empty")
    return filled


def _substituted(text: str, known: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name, sign, other = found[1] or found[4], found[2] or "", found[3] or ""
        given = known.get(name)
        there = given is not None and (bool(given) or not sign.startswith(":"))
        if sign.endswith("+"):
            return other if there else ""
        if there:
            return given or ""
        if sign.endswith("-"):
            return other
        raise Unresolved(f"`{text}` is not known: the argument `{name}` has no value")

    return _VARIABLE.sub(value, text)
