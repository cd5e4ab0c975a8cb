"""The service's configuration: a directory that the host's stack and the demos on it share.

`adapter.json` says where it listens, and is the host's; `routes.d/<demo>.json` and
`secrets.d/<demo>.json` are each demo's own, so that none writes another's. A file is put there by a
rename; what does not end in `.json` is passed over.
"""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from engines import KNOWN
from engines.protocol import Patience
from models.refusal import Refusal
from models.scalars import AbsolutePath, Declared, Tokens
from models.validation import parse

ADAPTER, ROUTES, SECRETS, REVISION = "adapter.json", "routes.d", "secrets.d", "revision"
"""What the directory holds."""
_DEMO = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
RouteName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?(\.[0-9]+)?$")]
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
    key: Annotated[str, Field(min_length=1)] | None = None
    """The name of the engine's own key in the demo's file of secrets, where it asks for one."""
    limits: Limits = Limits()
    """Bounds on one request."""


class AdapterConfig(Declared):
    """`adapter.json`."""

    version: Literal[1]
    """The form of this file."""
    listen: Annotated[str, AfterValidator(_address)]
    """`127.0.0.1:8300` or `unix:/run/berth/adapter.sock`; read at start only."""
    max_body_mib: Annotated[int, Field(ge=1, le=256)] = 8
    """The largest request body in MiB."""


class DemoRoutes(Declared):
    """`routes.d/<demo>.json`."""

    version: Literal[1]
    """The form of this file."""
    routes: dict[RouteName, Route]
    """Role → what serves it; `ROLE.1` and so on are its further replicas."""


def read_adapter(directory: Path) -> AdapterConfig:
    """What the host's stack says.

    Raises:
        Refusal: it cannot be read, is not JSON, or says something that cannot be.
    """
    file = directory / ADAPTER
    return parse(AdapterConfig, _json(file), str(file))


def demos(directory: Path) -> list[str]:
    """Names of the demos that have routes here; one that cannot be a demo's is left alone."""
    files = (directory / ROUTES).glob("*.json")
    return sorted(file.stem for file in files if _DEMO.fullmatch(file.stem))


def read_demo(directory: Path, demo: str) -> dict[str, tuple[Route, str]]:
    """Role → its route, and its engine's key, empty where it has none.

    Raises:
        Refusal: a file cannot be read, is not JSON, says something that cannot be, or a key that a
            route names is not there.
    """
    file = directory / ROUTES / f"{demo}.json"
    declared = parse(DemoRoutes, _json(file), str(file)).routes
    keys: dict[str, str] = {}
    secrets = directory / SECRETS / f"{demo}.json"
    if any(route.key for route in declared.values()):
        keys = _keys(secrets)
    for role, route in declared.items():
        if route.key and not keys.get(route.key):
            raise Refusal(f"role {role} names key `{route.key}`: no such key", at=str(secrets))
    return {role: (route, keys.get(route.key or "", "")) for role, route in declared.items()}


def _keys(file: Path) -> dict[str, str]:
    """What is wrong with it is told in words that hold nothing of it."""
    try:
        found = _json(file)
    except Refusal as error:
        if "JSON" in error.cause:
            raise Refusal("not JSON", at=str(file)) from None
        raise
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found.values()):
        raise Refusal("not an object of texts", at=str(file))
    return found


def _json(file: Path) -> object:
    try:
        return json.loads(file.read_text())
    except OSError as error:
        reason = f"not readable: {error.strerror}"
    except (ValueError, RecursionError) as error:
        reason = f"not JSON: {error}"
    raise Refusal(reason, at=str(file))
