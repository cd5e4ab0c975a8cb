"""The routes as they are now: read again when the file changes, without touching what runs."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from engines import engine
from engines.failure import EngineError
from engines.protocol import Engine, Upstream
from gateway.chat_template import ChatTemplate
from gateway.config import GatewayConfig, Limits, Route, key_of, read
from models.refusal import Refusal

_log = logging.getLogger("berth.adapter")


@dataclass(frozen=True)
class Role:
    """A role as a request sees it from its beginning to its end."""

    name: str
    engine: Engine
    template: ChatTemplate | None
    limits: Limits
    declared: Route


class Table:
    """Roles by name. A file that cannot be read leaves them as they were, and is told of.

    Raises:
        Refusal: at the beginning only, where there is nothing to keep.
    """

    def __init__(self, path: Path, http: httpx.AsyncClient) -> None:
        self._path = path
        self._http = http
        self._retiring: set[asyncio.Task[None]] = set()
        self._seen = self._stamp()
        self.config = read(path)
        self.roles = self._made(self.config, {})
        self.read_at = int(time.time())
        self.refused = ""

    def refresh(self) -> None:
        """Read the file if it is not the one that was read last; one `stat` where it is."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            config = read(self._path)
            roles = self._made(config, self.roles)
        except Refusal as error:
            self.refused = str(error)
            _log.error("the routes stay as they were: %s", error)
            return
        kept = {id(role.template) for role in roles.values()}
        gone = [role.template for role in self.roles.values() if id(role.template) not in kept]
        self.config, self.roles, self.refused = config, roles, ""
        self.read_at = int(time.time())
        _log.info("routes read again: %s", ", ".join(sorted(roles)) or "none")
        for template in gone:
            if template is not None:
                task = asyncio.get_running_loop().create_task(template.retire())
                self._retiring.add(task)
                task.add_done_callback(self._retiring.discard)

    def role(self, name: str) -> Role:
        """The role of that name.

        Raises:
            EngineError: there is none (404, with those that there are).
        """
        self.refresh()
        found = self.roles.get(name)
        if found is None:
            known = ", ".join(sorted(self.roles)) or "none"
            raise EngineError(
                f"no role is called {name!r}; known: {known}",
                status=404,
                retry=False,
                code="model_not_found",
                param="model",
            )
        return found

    async def close(self) -> None:
        """End what the roles hold."""
        templates = [role.template for role in self.roles.values() if role.template]
        await asyncio.gather(*(template.retire() for template in templates), *self._retiring)

    def _made(self, config: GatewayConfig, old: dict[str, Role]) -> dict[str, Role]:
        """Roles of a config; one that did not change keeps its engine's counts and its process."""
        made = {}
        for name, route in config.routes.items():
            before = old.get(name)
            upstream = Upstream(route.base_url, route.model, route.metrics_url, key_of(route))
            adapter = engine(route.engine, self._http, upstream, route.limits.patience())
            if before is not None and before.declared == route and not route.key_file:
                made[name] = before
            else:
                template = None
                if route.weights and not adapter.renders_chat:
                    template = ChatTemplate(route.weights)
                made[name] = Role(name, adapter, template, route.limits, route)
        return made

    def _stamp(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0, 0
        return found.st_mtime_ns, found.st_ino, found.st_size
