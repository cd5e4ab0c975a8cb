"""The frontend's own table of models: what others load or unload does not show in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .child import Child, TritonError
from .errors import RefusedError

OWNER = "Triton Inference Server"
UNLOAD_SECONDS = 120


@dataclass(frozen=True)
class Model:
    """One that was ready when it was looked at."""

    name: str
    backend: str
    inputs: frozenset[str]
    """The tensors that it takes."""
    created: int = field(default_factory=lambda: int(time.time()))

    def check(self, tensors: Iterable[str]) -> None:
        """Triton's own words for a tensor that the model does not have.

        Raises:
            TritonError: there is one; Triton's HTTP would only make a parameter of it.
        """
        for name in tensors:
            if name not in self.inputs:
                told = f"unexpected inference input '{name}' for model '{self.name}'"
                raise TritonError(told, 400)

    @property
    def row(self) -> dict[str, Any]:
        told = {"id": self.name, "created": self.created, "object": "model"}
        return {**told, "owned_by": OWNER}


class Models:
    """`backend` (`--backend`) overrides what a model's configuration says."""

    def __init__(self, child: Child, backend: str | None, explicit: bool) -> None:
        self._child, self._backend, self._explicit = child, backend, explicit
        self._table: dict[str, Model] = {}
        self._lock = asyncio.Lock()

    async def look(self) -> None:
        """Fill the table from Triton's index: every ready model, parts of ensembles too."""
        for row in await self._child.post("repository/index"):
            if row.get("state") == "READY":
                self._table[row["name"]] = await self._read(row["name"])

    async def _read(self, name: str) -> Model:
        config = await self._child.config(name)
        backend = self._backend or config.get("backend") or config.get("platform", "")
        return Model(name, backend, frozenset(tensor["name"] for tensor in config["input"]))

    def rows(self) -> list[dict[str, Any]]:
        return [model.row for model in self._table.values()]

    def find(self, name: str, status: int) -> Model:
        """
        Raises:
            RefusedError: with `status`: 400 for inference, 404 for a look.
        """
        if name not in self._table:
            raise RefusedError(f"Unknown model: {name}", status)
        return self._table[name]

    def _check_explicit(self) -> None:
        if not self._explicit:
            raise RefusedError("Model load/unload needs the model control mode 'explicit'")

    async def load(self, name: str) -> Model:
        """
        Raises:
            RefusedError: 400 in the wrong mode or loaded already, 500 where Triton fails.
        """
        self._check_explicit()
        async with self._lock:
            if name in self._table:
                raise RefusedError(f"Model '{name}' is already loaded")
            try:
                await self._child.post(f"repository/models/{name}/load")
            except TritonError as error:
                raise RefusedError(f"Failed to load model '{name}': {error}", 500) from error
            self._table[name] = await self._read(name)
            return self._table[name]

    async def unload(self, name: str) -> None:
        """
        Raises:
            RefusedError: 400 in the wrong mode or not in the table, 500 where Triton fails.
        """
        self._check_explicit()
        async with self._lock:
            self.find(name, 400)
            try:
                await self._child.post(f"repository/models/{name}/unload")
            except TritonError as error:
                raise RefusedError(f"Failed to unload model '{name}': {error}", 500) from error
            await asyncio.wait_for(self._gone(name), UNLOAD_SECONDS)
            del self._table[name]

    async def _gone(self, name: str) -> None:
        while True:
            rows = await self._child.post("repository/index")
            if not any(r["name"] == name and r.get("state") == "UNLOADING" for r in rows):
                return
            await asyncio.sleep(0.05)
