"""Triton's HTTP API (v2, with the repository extension), asked through any httpx client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from engines import NATIVE, native
from engines.asked_token import CANARY
from engines.protocol import Upstream

ANSWER_S = 10.0
"""Bound on a call that Triton answers from memory, in seconds."""


class ServerDown(Exception):  # noqa: N818 - a state of the server, caught by name
    """Nobody answers as a Triton server: not started yet, stopped, or the connection broke."""


class NoAnswer(Exception):  # noqa: N818
    """Connected, but no answer within the bound."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__(f"{path} did not answer within {seconds:.0f} s")
        self.seconds = seconds


class Rejected(Exception):  # noqa: N818
    """Triton answered with an error: its HTTP status and its own words."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{reason} (HTTP {status})")
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class ModelState:
    """A model in the index; `state` is empty for one that was never loaded."""

    state: str
    reason: str = ""


class TritonClient:
    """Calls of one server. Nothing is tried again here: whoever calls knows whether it may."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    @property
    def http(self) -> httpx.AsyncClient:
        """What it asks through."""
        return self._http

    async def live(self) -> bool:
        """Whether the server runs. Strict readiness says less: a failed first load makes it 400."""
        try:
            return (await self._send("GET", "/v2/health/live")).status_code == 200
        except (ServerDown, NoAnswer):
            return False

    async def ready(self) -> bool:
        """Triton's strict readiness: no first load is under way or failed."""
        return (await self._send("GET", "/v2/health/ready")).status_code == 200

    async def index(self, timeout_s: float = ANSWER_S) -> dict[str, ModelState]:
        """Every model the repository shows; of several versions the most alive one counts."""
        rows = await self._ask("POST", "/v2/repository/index", json={}, timeout_s=timeout_s)
        order = ("READY", "LOADING", "UNLOADING", "UNAVAILABLE", "")
        found: dict[str, ModelState] = {}
        for row in rows:
            state = ModelState(row.get("state", ""), row.get("reason", ""))
            known = found.get(row["name"])
            if known is None or order.index(state.state) < order.index(known.state):
                found[row["name"]] = state
        return found

    async def load(self, model: str, *, timeout_s: float) -> None:
        """Load, and wait for it. Giving up does not stop the load: a repeated one is safe."""
        path = f"/v2/repository/models/{quote(model, safe='')}/load"
        await self._ask("POST", path, json={}, timeout_s=timeout_s)

    async def unload(self, model: str, *, timeout_s: float = ANSWER_S) -> None:
        """Begin to unload. The answer comes at once and does not mean that memory is free.

        An ensemble's parts with it, which else would stay; a model without parts has none to lose.
        """
        path = f"/v2/repository/models/{quote(model, safe='')}/unload"
        whole = {"parameters": {"unload_dependents": True}}
        await self._ask("POST", path, json=whole, timeout_s=timeout_s)

    async def config(self, model: str) -> dict[str, Any]:
        """The configuration that the server holds, which need not be the repository's."""
        answer = await self._ask("GET", _model(model, "config"))
        return dict(answer)

    async def model_ready(self, model: str) -> bool:
        """What Triton says of a model's readiness; a killed backend stub stays ready here."""
        return (await self._send("GET", _model(model, "ready"))).status_code == 200

    async def generate(
        self, model: str, text: str, parameters: Mapping[str, Any], *, timeout_s: float
    ) -> dict[str, Any]:
        """One inference by the generate extension, not streamed."""
        body = {"text_input": text, "parameters": dict(parameters)}
        answer = await self._ask("POST", _model(model, "generate"), json=body, timeout_s=timeout_s)
        return dict(answer)

    async def speaks(self, model: str, engine: str) -> str:
        """The engine by whose names a loaded model is asked: `engine`, unless its tensors are
        another's. Under one name a model may be loaded by the engine that it is to leave."""
        inputs = {each["name"] for each in (await self.config(model)).get("input", [])}
        for name in (engine, *NATIVE):
            asked = native(name, self._http, Upstream("", model)).asked(CANARY, stream=False)
            if asked.keys() <= inputs:
                return name
        return engine

    async def token(self, model: str, engine: str, *, timeout_s: float) -> None:
        """One token of a model, asked for as its engine takes it (`engines.NATIVE`)."""
        body = native(engine, self._http, Upstream("", model)).asked(CANARY, stream=False)
        await self._ask("POST", _model(model, "generate"), json=body, timeout_s=timeout_s)

    async def statistics(self, model: str) -> dict[str, Any]:
        """Counts and durations of a model's requests since it was loaded."""
        return dict(await self._ask("GET", _model(model, "stats")))

    async def _ask(
        self, method: str, path: str, *, json: object = None, timeout_s: float = ANSWER_S
    ) -> Any:
        response = await self._send(method, path, json=json, timeout_s=timeout_s)
        if response.status_code != 200:
            raise Rejected(response.status_code, _reason(response))
        return response.json() if response.content else None

    async def _send(
        self, method: str, path: str, *, json: object = None, timeout_s: float = ANSWER_S
    ) -> httpx.Response:
        try:
            return await self._http.request(method, path, json=json, timeout=timeout_s)
        except httpx.TimeoutException as error:
            raise NoAnswer(path, timeout_s) from error
        except httpx.TransportError as error:
            raise ServerDown(str(error) or type(error).__name__) from error


def _model(model: str, what: str) -> str:
    return f"/v2/models/{quote(model, safe='')}/{what}"


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return response.text.strip()[:2000] or f"HTTP {response.status_code}"
