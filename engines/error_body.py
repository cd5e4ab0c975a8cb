"""What an engine says of a failure, in any of the shapes that engines use."""

from __future__ import annotations

import json
from typing import Any

from engines.failure import EngineError, failed, refused, unavailable

# Faults of an engine that it reports as the client's: trtllm-serve answers 400 to nearly every
# exception (openai_server.py `create_error_response`), Triton 500 to nearly every one.
_FAULTS = ("cuda", "out of memory", "enginedead", "executor", "mpi ", "internal error", "nccl")
_TOO_LONG = ("maximum model length", "max_model_len", "maximum context length", "max_seq_len",
             "max_input_len", "max_num_tokens")  # fmt: skip


def words(body: object) -> tuple[str, str]:
    """The message and the parameter of an error body; empty where it names none.

    Shapes: `{"error": {"message", "param"}}` (vLLM), `{"error": "text"}` (Triton, trtllm-serve from
    1.2), flat `{"object": "error", "message"}` (trtllm-serve), `{"detail": "text"}` and
    `{"detail": [{"loc", "msg"}]}` (Triton's OpenAI frontend, any FastAPI).
    """
    if not isinstance(body, dict):
        return (str(body).strip() if body is not None else ""), ""
    inner: Any = body.get("error", body)
    if isinstance(inner, str):
        return inner, ""
    if isinstance(inner, dict) and isinstance(inner.get("message"), str):
        param = inner.get("param")
        return inner["message"], param if isinstance(param, str) else ""
    detail = body.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        first = detail[0]
        field = ".".join(str(part) for part in first.get("loc", ()) if part != "body")
        return f"{field}: {first.get('msg', 'wrong')}".removeprefix(": "), field
    if isinstance(detail, str):
        return detail, ""
    return json.dumps(body)[:500], ""


def parsed(text: bytes | str) -> object:
    """JSON where it is JSON, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace") if isinstance(text, bytes) else text


def is_error(body: object) -> bool:
    """Whether a body that came with a 200 is an error all the same."""
    return isinstance(body, dict) and (bool(body.get("error")) or body.get("object") == "error")


def error_of(status: int, body: object) -> EngineError:
    """The EngineError for an answer, or an event, that is an error.

    A 401 or 403 is Berth's own fault (the key it holds for the engine), a 404 that the engine lost
    the model: neither is the client's.
    """
    message, param = words(body)
    message = message or f"the engine answered HTTP {status} and no reason"
    said = message.lower()
    if any(word in said for word in _TOO_LONG):
        return refused(message, param=param, code="context_length_exceeded")
    if "attribute 'lora_name'" in said:
        # vllm_backend's src/model.py goes on with None where it could not read the sampling.
        return refused("the engine refuses a sampling parameter, and only its log says which")
    if "only supported in decoupled mode" in said:
        return EngineError(
            "this role's model does not stream: `decoupled` is false in its model.yaml",
            status=501,
            retry=False,
            param="stream",
        )
    if "cancelled" in said:
        return failed(f"the engine ended the request: {message}")
    if status in (401, 403):
        return EngineError("the engine refuses Berth's key", status=502, retry=False)
    if "stub process" in said:
        # Triton 2.51.0 answers 400 on `generate` where a backend's process was killed, and goes on
        # saying that the model is ready.
        return unavailable(message)
    if status == 404 or "does not exist" in said or "unknown model" in said:
        return unavailable(f"the engine does not hold the model: {message}")
    if status == 429:
        return EngineError(message, status=429, retry=True)
    if status in (400, 413, 415, 422) and not any(fault in said for fault in _FAULTS):
        return refused(message, param=param)
    if status == 503 or "enginedead" in said or "unhealthy" in said:
        return unavailable(message)
    if status in (408, 504):
        return EngineError(message, status=504, retry=True)
    return failed(message)
