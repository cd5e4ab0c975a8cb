"""The frontend's errors: FastAPI's `detail`, a text or pydantic's list."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse


class RefusedError(Exception):
    """400 where the client is wrong, 500 where the server is, 422 with a list for the schema."""

    def __init__(self, detail: Any, status: int = 400) -> None:
        super().__init__(str(detail))
        self.detail, self.status = detail, status

    def response(self) -> JSONResponse:
        return JSONResponse({"detail": self.detail}, status_code=self.status)


def schema_error(kind: str, place: str, message: str, given: Any) -> RefusedError:
    row = {"type": kind, "loc": ["body", place], "msg": message, "input": given}
    return RefusedError([row], 422)
