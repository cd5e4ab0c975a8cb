"""A key of a demo: made once, kept as a secret in the stack's state, known to hosts as a hash."""

from __future__ import annotations

import secrets
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource

from components.providers.plain_refusals import BerthProvider
from models.gateway import key_hash

BYTES = 32
"""Random ones: then a plain SHA-256 of the key can be kept in the open."""


class DemoKeyProvider(BerthProvider):
    """Makes a key; nothing outside has to know."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Another name is another key."""
        replaces = ["name"] if _olds.get("name") != _news.get("name") else []
        return DiffResult(changes=bool(replaces), replaces=replaces)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """A new key, from the system's own source of randomness."""
        key = secrets.token_urlsafe(BYTES)
        return CreateResult(props["name"], {**props, "key": key, "sha256": key_hash(key)})


class DemoKey(Resource, module="berth", name="DemoKey"):
    """What a demo's clients send as `Authorization: Bearer KEY`."""

    key: pulumi.Output[str]
    """The key; a secret."""
    sha256: pulumi.Output[str]
    """What hosts keep of it."""

    def __init__(
        self, name: str, key_name: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        properties = {"name": key_name, "key": None, "sha256": None}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["key"])
        merged = pulumi.ResourceOptions.merge(opts, secret)
        super().__init__(DemoKeyProvider(), name, properties, merged)
