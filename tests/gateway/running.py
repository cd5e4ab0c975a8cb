"""The service on a real loopback socket, in front of engines that are served there too."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import openai

from gateway.service import application
from tests.engines.asking import NATIVE, Fake
from tests.engines.serving import serving

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<{{ message.role }}>{{ message.content }}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def weights(place: Path, template: Any = TEMPLATE, **more: Any) -> Path:
    """A weights directory with this chat template in its tokenizer's configuration."""
    place.mkdir(parents=True, exist_ok=True)
    about = {"bos_token": "<s>"} | ({} if template is None else {"chat_template": template}) | more
    (place / "tokenizer_config.json").write_text(json.dumps(about))
    return place


@dataclass
class Running:
    """The service, its configuration directory, and clients of it."""

    base: str
    config: Path
    http: httpx.AsyncClient
    routes: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def openai(self) -> openai.AsyncOpenAI:
        """The official client, unchanged, but that it tells of the first failure."""
        return openai.AsyncOpenAI(
            base_url=f"{self.base}/v1", api_key="-", max_retries=0, http_client=self.http
        )

    def write(self) -> None:
        """Write the routes as they are now."""
        write(self.config, self.routes)

    async def post(self, path: str, body: Any) -> httpx.Response:
        """Any body, as it is."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.http.post(self.base + path, content=content)


DEMO = "shop"


def write(directory: Path, routes: dict[str, dict[str, Any]], **more: Any) -> None:
    """A configuration with one demo's routes."""
    put(directory / "adapter.json", {"version": 1, "listen": "127.0.0.1:0"} | more)
    put(directory / f"routes.d/{DEMO}.json", {"version": 1, "routes": routes})


def put(file: Path, content: Any) -> None:
    """A file, there at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(content if isinstance(content, str) else json.dumps(content))
    fresh.rename(file)


@asynccontextmanager
async def running(
    place: Path, fakes: dict[str, Fake], *, limits: dict[str, Any] | None = None
) -> AsyncIterator[Running]:
    """The service with one role for each fake engine."""
    async with AsyncExitStack() as stack:
        routes: dict[str, dict[str, Any]] = {}
        for role, server in fakes.items():
            base = await stack.enter_async_context(serving(server.app))
            routes[role] = {"engine": server.kind, "base_url": base, "model": "m"}
            routes[role] |= {"metrics_url": f"{base}/metrics"} if server.kind in NATIVE else {}
            routes[role] |= {"limits": limits} if limits else {}
            if server.kind in NATIVE:
                routes[role]["weights"] = str(weights(place / "weights" / role))
        config = place / "adapter"
        write(config, routes)
        base = await stack.enter_async_context(serving(application(config)))
        http = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=20))
        yield Running(base, config, http, routes)
