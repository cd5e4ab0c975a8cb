"""What runs in a server of one model's own: one file per engine, each with the same functions.

Adding an engine is one file here, one in `engines/`, its traits in `models.engine`, and a line in
`SERVERS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from components.renderers.engines import triton_openai, trtllm_serve, vllm_serve
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


SERVERS: Mapping[str, ServerRenderer] = {
    "vllm": vllm_serve,
    "trtllm-serve": trtllm_serve,
    "triton-openai": triton_openai,
}
"""Engine → its renderer."""
