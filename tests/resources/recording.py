"""Mocks that record what a program declares, and give it plausible outputs."""

from __future__ import annotations

from typing import Any

import pulumi


def image_id(name: str) -> str:
    """Id of the image that a resource stands for: one for each reference."""
    return f"sha256:{name.rpartition('/')[2].encode().hex()}"


class Recorder(pulumi.runtime.Mocks):
    """Every declared resource, in order."""

    def __init__(self) -> None:
        self.resources: list[pulumi.runtime.MockResourceArgs] = []

    def new_resource(
        self, args: pulumi.runtime.MockResourceArgs
    ) -> tuple[str | None, dict[Any, Any]]:
        """Outputs are the inputs, and what only a provider knows."""
        self.resources.append(args)
        outputs = {"name": f"{args.name}-1a2b3c4", "imageId": image_id(args.name)}
        outputs |= {
            "stdout": "said",
            "revision": "r1",
            "since": "2026-11-21T08:00:00.000+00:00",
            "key": "a-key-of-the-test",
            "sha256": "0" * 64,
            "state": "active" if "RunningUnit" in args.typ else "READY",
        }
        return f"{args.name}-id", outputs | dict(args.inputs)

    def call(
        self, args: pulumi.runtime.MockCallArgs
    ) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        """Nothing here calls functions."""
        raise AssertionError(f"unexpected call {args.token}")

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Name → inputs of all resources of a type."""
        return {r.name: r.inputs for r in self.resources if r.typ == kind}
