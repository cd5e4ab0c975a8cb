"""Failures in OpenAI's shape."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from engines.failure import EngineError

RETRY_S = 2
"""What a client is told to wait, in seconds, where trying again makes sense."""


def told(error: EngineError) -> dict[str, Any]:
    """The body of an answer, and the data of an error event."""
    about = {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
    }
    return {"error": about}


def answer(error: EngineError) -> Response:
    """With `Retry-After` where the same request may succeed later."""
    waits = error.retry and error.status in (429, 503)
    headers = {"Retry-After": str(RETRY_S)} if waits else None
    return JSONResponse(told(error), error.status, headers)
