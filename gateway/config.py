"""The service's configuration: one JSON file that says where it listens and what each role is."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from engines import KNOWN
from engines.protocol import Patience
from models.refusal import Refusal
from models.scalars import AbsolutePath, Declared, Name, Tokens
from models.validation import parse

PositiveSeconds = Annotated[float, Field(gt=0, le=86_400)]


def _address(text: str) -> str:
    """`unix:/path` or a loopback address with a port: nothing here asks who is calling."""
    if text.startswith("unix:/"):
        return text
    host, _, port = text.rpartition(":")
    try:
        loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
        if not loopback or not 0 <= int(port) < 65536:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"listens on `unix:/path` or on a loopback address with a port, not on {text!r}"
        ) from None
    return text


def _engine(name: str) -> str:
    if name not in KNOWN:
        raise ValueError(f"no engine is called {name!r}; known: {', '.join(sorted(KNOWN))}")
    return name


class Limits(Declared):
    """Bounds on one request to a role."""

    max_tokens: Tokens = 32_768
    """The most tokens that a request may ask for."""
    default_max_tokens: Tokens = 1024
    """Tokens of a chat that names no bound; engines have defaults of their own, 16 some of them."""
    first_token_s: PositiveSeconds = 120
    """Seconds until an answer begins."""
    between_tokens_s: PositiveSeconds = 60
    """Seconds of silence inside an answer."""
    request_s: PositiveSeconds = 1800
    """Seconds from a request to its answer's end."""

    def patience(self) -> Patience:
        """The same, for the engine's adapter."""
        return Patience(
            first_s=self.first_token_s, between_s=self.between_tokens_s, whole_s=self.request_s
        )


class Route(Declared):
    """One role: the engine that serves it, and the model's name there."""

    engine: Annotated[str, AfterValidator(_engine)]
    """The adapter's name, as a catalog entry's `engine`."""
    base_url: Annotated[str, Field(pattern=r"^http://[^/?#@]+$")]
    """Where the engine listens, without a path."""
    metrics_url: Annotated[str, Field(pattern=r"^(http://[^?#@]+)?$")] = ""
    """The address of its metrics, where they are not at the base URL."""
    model: Annotated[str, Field(min_length=1)]
    """The engine's own name of the model."""
    weights: AbsolutePath | None = None
    """The weights directory, which holds the chat template; none for engines that render chats."""
    key_file: AbsolutePath | None = None
    """A file with the engine's own key, where it asks for one."""
    limits: Limits = Limits()
    """Bounds on one request."""


class GatewayConfig(Declared):
    """The whole file."""

    version: Literal[1]
    """The form of this file."""
    listen: Annotated[str, AfterValidator(_address)]
    """`127.0.0.1:8300` or `unix:/run/berth/adapter.sock`; read at start only."""
    max_body_mib: Annotated[int, Field(ge=1, le=256)] = 8
    """The largest request body in MiB."""
    routes: dict[Name, Route]
    """Role → what serves it."""


def read(path: Path) -> GatewayConfig:
    """The file's content.

    Raises:
        Refusal: it cannot be read, is not JSON, or says something that cannot be.
    """
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Refusal(f"not readable as JSON: {reason}", at=str(path)) from None
    return parse(GatewayConfig, content, str(path))


def key_of(route: Route) -> str:
    """The engine's key, or nothing where it has none."""
    if route.key_file is None:
        return ""
    try:
        return Path(route.key_file).read_text().strip()
    except OSError as error:
        raise Refusal(f"not readable: {error.strerror}", at=route.key_file) from None
