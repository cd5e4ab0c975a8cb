"""Errors of trtllm-serve: flat; only schema errors have an `error`, which is a string."""

from __future__ import annotations

from starlette.responses import JSONResponse


class RefusedError(Exception):
    """Nearly every failure, the engine's too: 400 in the flat shape."""

    kind, status = "BadRequestError", 400

    def response(self) -> JSONResponse:
        flat = {"object": "error", "message": str(self), "type": self.kind, "param": None}
        return JSONResponse({**flat, "code": self.status}, status_code=self.status)


class SchemaError(RefusedError):
    """A body that is not what pydantic wants."""

    def response(self) -> JSONResponse:
        return JSONResponse({"error": str(self)}, status_code=400)


def schema_error(kind: str, place: str, message: str) -> SchemaError:
    """In pydantic's notation."""
    return SchemaError(f"[{{'type': '{kind}', 'loc': ('body', '{place}'), 'msg': '{message}'}}]")
