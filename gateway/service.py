"""The ASGI application."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engines.failure import EngineError, unavailable
from gateway import errors
from gateway.client import ClientGoneError
from gateway.connecting import EngineTransport
from gateway.framing import Framing
from gateway.measures import Measures
from gateway.openai_paths import OpenAiPaths
from gateway.table import Table

_log = logging.getLogger("berth.adapter")
Handler = Callable[[Request], Awaitable[Response]]


def client() -> httpx.AsyncClient:
    """To every engine: nginx bounds connections, so that none waits here for another to end."""
    return httpx.AsyncClient(transport=EngineTransport(), trust_env=False, follow_redirects=False)


def application(config: Path) -> Starlette:
    """The service of one configuration directory.

    Raises:
        Refusal: `adapter.json` cannot be used. Later, what it said last stays.
    """
    http = client()
    table = Table(config, http)
    measures = Measures()
    openai, framing = OpenAiPaths(table, measures), Framing(table, measures)

    def about(role: str) -> dict[str, object]:
        return {"id": role, "object": "model", "created": table.read_at, "owned_by": "berth"}

    async def models(_: Request) -> Response:
        table.refresh()
        return JSONResponse(
            {"object": "list", "data": [about(role) for role in sorted(table.roles)]}
        )

    async def model(request: Request) -> Response:
        return JSONResponse(about(table.role(request.path_params["role"]).name))

    async def health(_: Request) -> Response:
        """That the service runs; what its engines do is theirs to say."""
        table.refresh()
        said = {"status": "ok", "roles": sorted(table.roles), "routes_read_at": table.read_at}
        return JSONResponse(said | ({"routes_refused": table.refused} if table.refused else {}))

    async def role_health(request: Request) -> Response:
        """Whether a role's engine is alive: what a balancer in front asks often, so no token."""
        role = table.role(request.path_params["role"])
        said = await role.engine.health()
        if not said.ok:
            raise unavailable(f"the engine of {role.name} does not serve: {said.reason}")
        return JSONResponse({"status": "ok", "role": role.name, "engine": role.engine.name})

    async def metrics(_: Request) -> Response:
        table.refresh()
        content = await measures.text(table.roles.values())
        return Response(content, media_type="text/plain; version=0.0.4")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.table = table
        try:
            yield
        finally:
            await table.close()
            await http.aclose()

    routes = [
        Route("/v1/chat/completions", _told(openai.chat), methods=["POST"]),
        Route("/v1/completions", _told(openai.completion), methods=["POST"]),
        Route("/v1/stream", _told(framing.stream), methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{role:path}", _told(model)),
        Route("/health", health),
        Route("/health/{role:path}", _told(role_health)),
        Route("/metrics", metrics),
    ]
    handlers = {HTTPException: _unknown_path, Exception: _fault}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


def _told(handler: Handler) -> Handler:
    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except EngineError as error:
            if error.status >= 500 and error.__cause__ is not None:
                _log.warning("%s: %s (%r)", request.url.path, error.message, error.__cause__)
            return errors.answer(error)
        except ClientGoneError:
            return Response(status_code=499)  # Nobody reads it.

    return answered


async def _unknown_path(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = "no such path" if status == 404 else f"{request.method} is not for this path"
    return errors.answer(EngineError(what, status=status, retry=False))


async def _fault(_: Request, error: Exception) -> Response:
    # Starlette logs it with its traceback; the client learns nothing of the inside.
    failure = EngineError("the adapter failed; its log says how", status=500, retry=True)
    failure.__cause__ = error
    return errors.answer(failure)
