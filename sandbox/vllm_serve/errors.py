"""vLLM's error answers: OpenAI's shape, with its own words in `type`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from sandbox.serving.steps import EngineDeadError


class RefusedError(Exception):
    """An answer other than 200."""

    def __init__(
        self,
        message: str,
        status: int = HTTPStatus.BAD_REQUEST,
        kind: str = "BadRequestError",
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.param = status, kind, param

    @property
    def body(self) -> dict[str, Any]:
        told = {"message": str(self), "type": self.kind, "param": self.param}
        return {"error": {**told, "code": int(self.status)}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, status_code=self.status)


def unknown_model(asked: str, names: list[str]) -> RefusedError:
    message = f"The model `{asked}` does not exist. Valid aliases: {', '.join(names)}"
    return RefusedError(message, HTTPStatus.NOT_FOUND, "NotFoundError", "model")


def unreadable(message: str) -> RefusedError:
    """A body that is no JSON object, or a field of a wrong type."""
    return RefusedError(message, kind="Bad Request")


def engine_dead(error: EngineDeadError) -> RefusedError:
    return RefusedError(str(error), HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError")
