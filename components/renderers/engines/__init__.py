"""What runs of each engine: one file per engine, with the functions of one of the protocols below.

An engine with a server of its own is a `ServerRenderer`, one that runs from the model repository an
`EntryRenderer`. Adding an engine: docs/engines.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from components.renderers.engines import (
    triton_batcher,
    triton_llmapi,
    triton_openai,
    triton_openai_batcher,
    triton_vllm,
    trtllm_serve,
    vllm_serve,
)
from models.plan import Placement


class ServerRenderer(Protocol):
    """A module of this package."""

    INSIDE: int
    """Port in the container."""
    METRICS: str
    """Path of the metrics on the same port."""
    HEALTH: str
    """Path there that answers 200 while the server can serve."""

    def command(self, placement: Placement) -> Sequence[str]:
        """Program and arguments, in place of the image's entry point. No secrets."""

    def served_name(self, placement: Placement) -> str:
        """What the server calls its model."""

    def environment(self, placement: Placement) -> Mapping[str, str]:
        """Variables of the container. No secrets."""

    def files(self, placement: Placement) -> Mapping[str, str]:
        """Path on the host and in the container → text of a file that the server reads."""


class EntryRenderer(Protocol):
    """A module of this package, for an engine that runs from the model repository."""

    def config(self, placement: Placement) -> str:
        """Triton's model configuration of the entry by which the model is called."""

    def arguments(self, placement: Placement) -> dict[str, object]:
        """`1/model.json` beside it: what the engine is told, by vLLM's names; the rules read it."""

    def files(self, placement: Placement) -> Mapping[str, str]:
        """Path in that entry → text of each further file."""

    def parts(self, placement: Placement) -> Mapping[str, Mapping[str, str]]:
        """Name of each further entry, loaded and unloaded with that one → path → text."""


SERVERS: Mapping[str, ServerRenderer] = {
    "vllm": vllm_serve,
    "trtllm-serve": trtllm_serve,
    "triton-openai": triton_openai,
    "triton-openai-batcher": triton_openai_batcher,
}
"""Engine → its renderer, of those with a server of their own."""
ENTRIES: Mapping[str, EntryRenderer] = {
    "triton-vllm": triton_vllm,
    "triton-openai": triton_vllm,
    "triton-llmapi": triton_llmapi,
    "triton-batcher": triton_batcher,
    "triton-openai-batcher": triton_batcher,
}
"""Engine → its renderer, of those that run from the model repository."""
