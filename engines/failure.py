"""The one error of an engine, and how failures of the transport become it."""

from __future__ import annotations

import httpx


class EngineError(Exception):
    """An engine did not do what was asked.

    Attributes:
        message: for the client; holds no address and no secret.
        status: the HTTP status for the client.
        type: OpenAI's `type` of the error.
        code: OpenAI's `code`, or None.
        param: the request's field that is to blame, or None.
        retry: whether the same request may succeed when it is sent again.
    """

    def __init__(
        self, message: str, *, status: int, retry: bool, code: str | None = None, param: str = ""
    ) -> None:
        self.message = message[:2000]
        self.status = status
        self.retry = retry
        self.code = code
        self.param = param or None
        super().__init__(self.message)

    @property
    def type(self) -> str:
        """OpenAI's own words, by status."""
        if self.status == 429:
            return "rate_limit_error"
        return "invalid_request_error" if self.status < 500 else "server_error"

    @property
    def late(self) -> bool:
        """Whether all it says is that no answer came in time."""
        return self.code == "engine_silent"


def refused(message: str, *, param: str = "", code: str | None = None) -> EngineError:
    """The request itself is wrong."""
    return EngineError(message, status=400, retry=False, param=param, code=code)


def unavailable(message: str) -> EngineError:
    """Nothing serves now; it may later."""
    return EngineError(message, status=503, retry=True, code="engine_unavailable")


def broken(message: str) -> EngineError:
    """An answer that began, or should have, and is not one."""
    return EngineError(message, status=502, retry=True, code="engine_broken")


def failed(message: str) -> EngineError:
    """The engine says that it failed."""
    return EngineError(message, status=500, retry=True, code="engine_failed")


def silent(seconds: float) -> EngineError:
    """The engine holds the connection and says nothing."""
    return EngineError(
        f"the engine said nothing for {seconds:g} s", status=504, retry=True, code="engine_silent"
    )


def of_transport(error: httpx.HTTPError) -> EngineError:
    """What a client is told of a connection that failed; the address stays in `__cause__`."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return unavailable("the engine does not listen")
    if isinstance(error, httpx.PoolTimeout):
        return unavailable("no connection to the engine was free")
    if isinstance(error, httpx.TimeoutException):
        return EngineError(
            "the engine did not answer in time", status=504, retry=True, code="engine_silent"
        )
    return broken("the engine's connection broke")
