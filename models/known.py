"""What of a stack is no resource, so that the policy pack can judge it all the same.

It travels as one text: the pack's SDK unpacks every property anew for each policy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import TypeAdapter

from models.build import BuiltImage
from models.judged import Judged, JudgedHost, JudgedInstance, JudgedService
from models.weights import Weights


@dataclass(frozen=True)
class Known:
    """Facts of hosts, and what a user wrote."""

    stack: str = ""
    """`project/stack`."""
    hosts: Mapping[str, JudgedHost] = field(default_factory=dict)
    instances: tuple[JudgedInstance, ...] = ()
    """Those that another stack brings up."""
    services: tuple[JudgedService, ...] = ()
    """As they are declared: a gateway is no container."""
    weights: Mapping[str, Mapping[str, Weights]] = field(default_factory=dict)
    """Host → directory → what it holds, of all models of the stack."""
    builds: Mapping[str, BuiltImage] = field(default_factory=dict)
    """Image reference → the build that it is of."""
    plain_config: Mapping[str, object] = field(default_factory=dict)
    declared: frozenset[str] | None = None
    """`type::name` of each resource that the program declares; None: of all that there are."""


_JSON = TypeAdapter(Known)


def known_of(judged: Judged, declared: Iterable[str] | None = None) -> Known:
    """What resources will not show of a stack."""
    weights: dict[str, dict[str, Weights]] = defaultdict(dict)
    for model in judged.models:
        if model.weights is not None:
            weights[model.host][model.weights_name] = model.weights
    return Known(
        stack=judged.stack,
        hosts=judged.hosts,
        instances=tuple(each for each in judged.instances if not each.owned),
        services=judged.services,
        weights=dict(weights),
        builds=judged.builds,
        plain_config=judged.plain_config,
        declared=None if declared is None else frozenset(declared),
    )


def written(known: Known) -> str:
    """As text."""
    return _JSON.dump_json(known).decode()


@lru_cache(maxsize=4)
def read(text: str) -> Known:
    """From text.

    Raises:
        ValueError: it is none of `written`.
    """
    return _JSON.validate_json(text)
