"""The routes as they are now: read again when a file changes, without touching what runs."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from engines import engine
from engines.failure import EngineError
from engines.protocol import Engine, Upstream
from gateway import config
from gateway.chat_template import ChatTemplate
from gateway.config import Limits, Route
from models.refusal import Refusal

YOUNG_NS = 100 * 10**6
"""How long after a change a stamp is not relied on, in nanoseconds: the kernel's clock of files
goes on in steps (4 ms at 250 ticks a second), so two changes within one step look like one."""
_WATCHED = (config.ADAPTER, config.ROUTES, config.SECRETS, config.REVISION)
_log = logging.getLogger("berth.adapter")


@dataclass(frozen=True)
class Role:
    """A role as a request sees it from its beginning to its end."""

    demo: str
    role: str
    engine: Engine
    template: ChatTemplate | None
    limits: Limits
    declared: Route
    key: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """`<demo>/<role>`: two demos may call a role alike."""
        return f"{self.demo}/{self.role}"


class Table:
    """Roles by `<demo>/<role>`. What cannot be read of one demo leaves that demo's as they were, is
    told of, and keeps nobody else's from changing.

    Raises:
        Refusal: at the beginning only, where `adapter.json` cannot be used.
    """

    def __init__(self, directory: Path, http: httpx.AsyncClient) -> None:
        self._directory = directory
        self._http = http
        self._retiring: set[asyncio.Task[None]] = set()
        self._seen = self._stamps()
        self.config = config.read_adapter(directory)
        self.roles: dict[str, Role] = {}
        self.refused: dict[str, str] = {}
        """Demo, or `adapter.json` → why what it says now is not used."""
        self.read_at = int(time.time())
        self._read_demos()

    def refresh(self) -> None:
        """Read what is there if it is not what was read last; a few `stat` calls where it is."""
        stamps = self._stamps()
        if stamps is not None and stamps == self._seen:
            return
        self._seen = stamps
        old, told = self.roles, self.refused
        try:
            self.config = config.read_adapter(self._directory)
            self.refused = {}
        except Refusal as error:
            self.refused = {config.ADAPTER: str(error)}
        self._read_demos()
        for where, why in self.refused.items():
            if told.get(where) != why:
                _log.error("%s stays as it was: %s", where, " ".join(why.split()))
        if (self.roles, self.refused) != (old, told):
            self.read_at = int(time.time())
            _log.info("routes read again: %s", ", ".join(sorted(self.roles)) or "none")
        self._retire(old)

    def role(self, name: str) -> Role:
        """The role of that name.

        Raises:
            EngineError: there is none (404, with those of the same demo).
        """
        self.refresh()
        found = self.roles.get(name)
        if found is None:
            demo = name.partition("/")[0]
            known = sorted(role.name for role in self.roles.values() if role.demo == demo)
            raise EngineError(
                f"no role is called {name!r}; known: {', '.join(known) or 'none'}",
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

    def _read_demos(self) -> None:
        """All demos' roles, put in the place of the old ones at once."""
        made: dict[str, Role] = {}
        for demo in config.demos(self._directory):
            try:
                declared = config.read_demo(self._directory, demo)
            except Refusal as error:
                self.refused[demo] = str(error)
                made |= {name: role for name, role in self.roles.items() if role.demo == demo}
                continue
            for role, (route, key) in declared.items():
                its = self._made(demo, role, route, key)
                made[its.name] = its
        self.roles = made

    def _made(self, demo: str, role: str, route: Route, key: str) -> Role:
        """A role; one that did not change keeps its engine's counts and its process."""
        before = self.roles.get(f"{demo}/{role}")
        if before is not None and (before.declared, before.key) == (route, key):
            return before
        upstream = Upstream(route.base_url, route.model, route.metrics_url, key)
        adapter = engine(route.engine, self._http, upstream, route.limits.patience())
        template = None
        if route.weights and not adapter.renders_chat:
            template = ChatTemplate(route.weights)
        return Role(demo, role, adapter, template, route.limits, route, key)

    def _retire(self, old: dict[str, Role]) -> None:
        """Processes of templates that no role has any more end once those that wait are through."""
        kept = {id(role.template) for role in self.roles.values()}
        for template in (role.template for role in old.values() if id(role.template) not in kept):
            if template is not None:
                task = asyncio.get_running_loop().create_task(template.retire())
                self._retiring.add(task)
                task.add_done_callback(self._retiring.discard)

    def _stamps(self) -> tuple[tuple[int, int, int], ...] | None:
        """Of all that is watched; None while something of it has only just changed."""
        found, now = [], time.time_ns()
        for name in _WATCHED:
            try:
                there = os.stat(self._directory / name)  # noqa: PTH116 - asked with every request
            except OSError:
                found.append((0, 0, 0))
                continue
            if 0 <= now - there.st_mtime_ns < YOUNG_NS:
                return None
            found.append((there.st_mtime_ns, there.st_ino, there.st_size))
        return tuple(found)
