"""The gateway: what a host declares of it, and the routes that demos give it."""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from models.scalars import AbsolutePath, Declared, MiB, Port, Seconds

ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$")]
State = Literal["serving", "not loaded"]


class TlsFiles(Declared):
    """A certificate and its key, as PEM files on the host."""

    certificate: AbsolutePath
    """The certificate, those of its issuers after it."""
    key: AbsolutePath
    """Its private key; read by root alone."""


class Adapter(Declared):
    """The service that gives OpenAI's API to engines without it, on the host's loopback alone."""

    image: str = Field(min_length=1)
    """Its container's image, built from `gateway/Dockerfile`."""
    port: Port = 8300
    """Port that it listens on, on 127.0.0.1."""
    memory_mib: MiB = 2048
    """Most memory that it may have, in MiB; each model's chat template has a process in it."""


class Gateway(Declared):
    """A host's gateway: where clients reach its roles, and what it lets through."""

    address: str = "0.0.0.0"  # noqa: S104 - it is what clients call
    """IP address that it listens on."""
    port: Port = 8443
    """Port that it listens on."""
    tls: TlsFiles | Literal["self_signed", "off"] = "self_signed"
    """A certificate on the host; `self_signed`: one that is made there; `off`: only on loopback,
    because keys would be readable on the way."""
    names: list[ServerName] = []
    """Names and IP addresses by which clients call the host, for the self-signed certificate."""
    max_body_mib: MiB = 32
    """Largest request body, in MiB; pictures in a prompt count."""
    connections_per_key: int = Field(default=64, ge=1)
    """Requests that one key may have under way at once; more get 429. A demo may set its own."""
    timeout_s: Seconds = 600
    """How long one answer may take, in seconds. Streams that are open when the gateway's
    configuration is loaded anew are given as long to end."""
    silence_s: Seconds = 120
    """How long an engine may be silent in a stream, before the first token too, in seconds."""
    drain_s: int = Field(default=30, ge=0, le=120)
    """How long answers under way are waited for before their model is unloaded, in seconds; new
    requests for it get 503 from then on."""
    workers: int = Field(default=4, ge=1, le=64)
    """nginx's worker processes."""
    url: Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.:\[\]-]+$")] | None = None
    """By what clients reach it. Unset: `https://` (`http://` where `tls` is `off`), the host's
    `ssh.address`, and `port`."""
    adapter: Adapter | None = None
    """The adapter beside it; without one, only engines that speak OpenAI's API can be reached."""

    @model_validator(mode="after")
    def _keys_stay_secret(self) -> Self:
        try:
            address = ipaddress.ip_address(self.address)
        except ValueError:
            raise ValueError(f"`address` is an IP address, not `{self.address}`") from None
        if self.tls == "off" and not address.is_loopback:
            raise ValueError(
                f"`tls: off` on {self.address} would send keys in clear text: listen on "
                "127.0.0.1, or use `self_signed` or a certificate"
            )
        scheme = "http" if self.tls == "off" else "https"
        if self.url is not None and not self.url.startswith(f"{scheme}://"):
            raise ValueError(f"`url` begins with {scheme}:// here, as `tls` says")
        if self.adapter is not None and self.adapter.port == self.port:
            raise ValueError(f"`port` and `adapter.port` are both {self.port}")
        return self

    def reached_at(self, address: str) -> str:
        """The address that clients call, without a path.

        Args:
            address: the host's own, for a gateway that declares no `url`.
        """
        if self.url is not None:
            return self.url
        host = f"[{address}]" if ":" in address else address
        return f"{'http' if self.tls == 'off' else 'https'}://{host}:{self.port}"

    def called(self, address: str) -> Gateway:
        """The same, with a certificate that names what clients call.

        Args:
            address: the host's own.
        """
        host = urlsplit(self.reached_at(address)).hostname or address
        names = list(dict.fromkeys([*self.names, host, address]))
        return self.model_copy(update={"names": names})

    @property
    def listen(self) -> str:
        """Address and port as nginx writes them."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class Replica:
    """One server that answers for a role."""

    address: str
    """`127.0.0.1:PORT` on the host: engines listen on its loopback only."""
    unit: str
    """The systemd unit that runs it."""
    load: str = ""
    """Name of its model's claim: whoever ends that load closes the replica first."""
    model: str | None = None
    """The model's name at this one, where replicas differ; None: the endpoint's. Behind the adapter
    all have one address, and are told apart by it."""
    health: str | None = None
    """Its own path for the health check; None: the endpoint's."""
    checked_at: str | None = None
    """`127.0.0.1:PORT` where its health is asked; None: at its address. Behind the adapter it is
    the engine's own."""
    closed: str = ""
    """Why it gets no traffic whatever its health; set on the host while its model goes."""


@dataclass(frozen=True)
class Endpoint:
    """Where one API of a role is served, by replicas that are all alike."""

    model: str
    """The model's name there, which the gateway writes into requests."""
    health: str
    """Path that answers 200 while a replica can serve."""
    replicas: tuple[Replica, ...]


@dataclass(frozen=True)
class RoleRoute:
    """What a role's name leads to."""

    model: str
    """The catalog's name of the model that is to serve; clients may call the role by it."""
    engine: str
    openai: Endpoint | None
    """OpenAI's API: the engine's own, or the adapter's. None only while not loaded."""
    state: State = "serving"
    reason: str = ""
    """Why it is not loaded, for clients; one line, no secret."""
    retry_after_s: int = 10
    """What a client that is refused is told to wait, in seconds."""
    framing: Endpoint | None = None
    """The adapter's stream of `started`, `token`, `metrics`, `end` and `error` events."""
    kserve: Endpoint | None = None
    """KServe v2; `model` is the repository entry."""
    fallback: str | None = None
    """The catalog's name of the model that serves in the place of `model`; None: it serves."""


def key_hash(key: str) -> str:
    """What the host keeps of a key: SHA-256, 64 hexadecimal digits.

    A key must be random (32 bytes or more): then a slow hash would add nothing.
    """
    return hashlib.sha256(key.encode()).hexdigest()
