"""Versions of releases, ordered as Python packages are (PEP 440)."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import BeforeValidator


@lru_cache(maxsize=4096)
def version(text: str) -> Version | None:
    """`text` as a version, or None where it is none.

    A builder's own addition (`0.17.1+nv26.3`) does not count: it is the same release.
    """
    try:
        return Version(Version(text).public)
    except InvalidVersion:
        return None


def at_least(text: str, floor: str) -> bool:
    """Whether `text` is `floor` or newer; not, where either is no version."""
    this, other = version(text), version(floor)
    return this is not None and other is not None and this >= other


@lru_cache(maxsize=1024)
def upper_bound(specifiers: str) -> tuple[str, str] | None:
    """The lowest upper bound that `specifiers` set, as (operator, version): `("<", "5")`.

    Exclusions (`!=`) set none. None: any newer version will do.
    """
    bounds = [
        (specifier.operator, specifier.version)
        for specifier in SpecifierSet(specifiers)
        if specifier.operator in ("<", "<=")
    ]
    return min(bounds, key=lambda bound: Version(bound[1]), default=None)


def admits_none_after(specifiers: str, newest: str) -> bool:
    """Whether every version that `specifiers` admit is `newest` or older."""
    bound = upper_bound(specifiers)
    return bound is not None and at_least(newest, bound[1])


def _version_text(value: object) -> object:
    if isinstance(value, str) and value and version(value) is None:
        raise ValueError(f"`{value}` is not a version, like 0.19.1 or 0.6.3.post1")
    return value or None


def _specifiers_text(value: object) -> object:
    try:
        SpecifierSet(value if isinstance(value, str) else "")
    except InvalidSpecifier:
        raise ValueError(f"`{value}` is not a version range, like >=4.56.0,<5") from None
    return value or None


# What a table's cell holds, as it is written there: `580.82.07` keeps its zero. Empty: unknown.
VersionText = Annotated[str | None, BeforeValidator(_version_text)]
SpecifiersText = Annotated[str | None, BeforeValidator(_specifiers_text)]
