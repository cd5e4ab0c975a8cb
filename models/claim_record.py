"""What a host's ledger holds: one model's claim, with everything needed to end it.

The host reads and writes these too, so this file needs nothing but Python ≥ 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from models.engine import TRAITS
from models.overlap import Claim
from models.refusal import Refusal


@dataclass(frozen=True, order=True)
class ClaimedGpu:
    """What is claimed of one GPU."""

    uuid: str
    mib: int
    """In MiB."""


@dataclass(frozen=True)
class ClaimRecord:
    """A claim in the ledger. Those of one stack, one demo and one holder change together."""

    name: str
    """Unique on the host: `berth/dev/reference.gemma-4-e4b-it/triton@2`."""
    owner: str
    """The holder: `project/stack/demo`; for what a person holds, whatever they call it."""
    gpus: tuple[ClaimedGpu, ...]
    stack: str = ""
    """`project/stack`; empty where a person holds it."""
    demo: str = ""
    roles: tuple[str, ...] = ()
    """The names that clients call."""
    model: str = ""
    """Name in the catalog."""
    entry: str = ""
    """Name of the repository entry, so Triton's model name."""
    instance: str = ""
    """The unit without `.service`; empty where it is none of Berth's."""
    engine: str = "triton-vllm"
    """What serves it: a name of `models.engine`. One with a model for life ends with its unit."""
    http_port: int = 0
    control_key_file: str = ""
    """With these two a stranger can end it: unload the model, then release the claim."""
    shared: bool = False
    """Whether it may stand beside others, each within its memory."""
    since: str = ""
    """When it was first claimed: UTC, ISO 8601 to the second."""
    leaving: bool = False
    """Given up by its holder and not gone yet: it still counts against everybody else."""
    instead_of: str = ""
    """For a fallback: the name of its holder's claim whose place it takes."""
    left_by: str = ""
    """For a place that a claim has left: that claim's name. Its server may still be there."""

    @classmethod
    def of(cls, values: Mapping[str, Any], at: str = "claim") -> ClaimRecord:
        """A record from JSON; what it does not know is left out.

        Args:
            values: the record's fields.
            at: what it is called in a refusal.

        Raises:
            Refusal: a field is missing, or of another type.
        """
        if not isinstance(values, Mapping):
            raise _wrong(at, "it is no object")
        given = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        for name, expected in _TYPES.items():
            value = given.get(name, expected())
            if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
                raise _wrong(f"{at}.{name}", f"{value!r} is no {_WORDS[expected]}")
        for name in ("name", "owner", "gpus"):
            if not given.get(name):
                raise _wrong(f"{at}.{name}", "it is not given")
        roles = given.get("roles", [])
        if not isinstance(roles, (list, tuple)) or not all(isinstance(r, str) for r in roles):
            raise _wrong(f"{at}.roles", "it is no list of names")
        return cls(**{**given, "roles": tuple(roles), "gpus": _gpus(given["gpus"], f"{at}.gpus")})

    @property
    def for_life(self) -> bool:
        """Whether its unit serves this model alone, so that it goes with the unit."""
        return self.engine in TRAITS and TRAITS[self.engine].for_life

    @property
    def load(self) -> str:
        """Name of the claim of what serves under it, by which the gateway has its routes."""
        return self.left_by or self.name

    def json(self) -> dict[str, Any]:
        """Plain values, from which `of` makes an equal record."""
        plain = asdict(self)
        return {**plain, "roles": list(self.roles), "gpus": list(plain["gpus"])}

    def said(self) -> str:
        """Who holds what, for a person."""
        held = f"{self.model} on {self.instance}" if self.model else ""
        words = f"{self.owner}: {'+'.join(self.roles)}" if self.roles else self.owner
        words += f" ({held})" if held else ""
        words += ", the fallback" if self.instead_of else ""
        words += f" since {self.since}" if self.since else ""
        return words + (", about to leave" if self.leaving else "")

    def claims(self, host: str) -> tuple[Claim, ...]:
        """As the overlap rule takes them. Of the two places of a server that moves it is ever in
        one, so they are alternatives."""
        said, instead_of = self.said(), self.instead_of or self.left_by
        return tuple(
            Claim(host, gpu.uuid, self.name, said, gpu.mib, self.shared, instead_of)
            for gpu in self.gpus
        )


_TYPES: dict[str, type] = {
    "name": str, "owner": str, "stack": str, "demo": str, "model": str, "entry": str,
    "engine": str, "instance": str, "control_key_file": str, "since": str, "http_port": int,
    "shared": bool, "leaving": bool, "instead_of": str, "left_by": str,
}  # fmt: skip
_WORDS = {str: "text", int: "whole number", bool: "`true` or `false`"}


def _gpus(values: object, at: str) -> tuple[ClaimedGpu, ...]:
    if not isinstance(values, (list, tuple)):
        raise _wrong(at, "it is no list")
    found: dict[str, ClaimedGpu] = {}
    for number, value in enumerate(values):
        uuid = value.get("uuid") if isinstance(value, Mapping) else None
        mib = value.get("mib") if isinstance(value, Mapping) else None
        if not isinstance(uuid, str) or not uuid:
            raise _wrong(f"{at}[{number}].uuid", f"{uuid!r} is no GPU's UUID")
        if not isinstance(mib, int) or isinstance(mib, bool) or mib <= 0:
            raise _wrong(f"{at}[{number}].mib", f"{mib!r} is no amount of memory in MiB")
        if uuid in found:
            raise _wrong(f"{at}[{number}].uuid", f"{uuid} is there twice")
        found[uuid] = ClaimedGpu(uuid, mib)
    return tuple(found.values())


def _wrong(at: str, cause: str) -> Refusal:
    return Refusal(
        cause,
        consequence="Nothing was changed.",
        fix="a claim has a name, an owner, and GPUs with `uuid` and `mib`.",
        at=at,
    )
