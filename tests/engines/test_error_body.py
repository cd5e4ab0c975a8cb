"""Errors of every shape that engines have, and what a client is told."""

from __future__ import annotations

from typing import Any

import pytest

from engines.error_body import error_of

VLLM = {
    "error": {
        "message": "The model `nope` does not exist.",
        "type": "NotFoundError",
        "param": "model",
        "code": 404,
    }
}
FLAT = {"object": "error", "type": "BadRequestError", "param": None, "code": 400}
SCHEMA = {"detail": [{"loc": ["body", "temperature"], "msg": "Input should be a number"}]}


@pytest.mark.parametrize(
    ("status", "body", "seen", "words"),
    [
        (404, VLLM, 503, "does not hold the model: The model `nope` does not exist."),
        (400, {"error": {"message": "over max_model_len (4096)"}}, 400, "over max_model_len"),
        (400, FLAT | {"message": "top_p must be below 1"}, 400, "top_p must be below 1"),
        # trtllm-serve blames the client for nearly everything.
        (400, FLAT | {"message": "CUDA error: out of memory"}, 500, "CUDA error"),
        (400, {"error": "temperature: Input should be a number"}, 400, "should be a number"),
        (404, {"detail": "Not Found"}, 503, "does not hold the model: Not Found"),
        (400, {"detail": "Unknown model: m"}, 503, "does not hold the model: Unknown model: m"),
        (422, SCHEMA, 400, "temperature: Input should be a number"),
        (401, {"error": "Unauthorized"}, 502, "refuses Berth's key"),
        (503, b"LLM is unavailable.".decode(), 503, "LLM is unavailable."),
        (400, {"error": "Stub process 'm_0_0' is not healthy."}, 503, "Stub process"),
        (500, {"error": "Error generating stream: longer than the maximum model length of 9"},
         400, "longer than the maximum"),
        (500, {"error": "Error generating stream: 'NoneType' object has no attribute 'lora_name'"},
         400, "refuses a sampling parameter"),
        (500, {"error": "Error generating request: Streaming is only supported in decoupled mode."},
         501, "does not stream: `decoupled` is false"),
        (500, {"error": {"message": "EngineDeadError: see stack trace", "type": "x"}}, 503, "Dead"),
        (400, {"error": "Request cancelled by client"}, 500, "ended the request"),
        (429, {"error": "too many requests"}, 429, "too many requests"),
        (500, "", 500, "HTTP 500 and no reason"),
    ],
)  # fmt: skip
def test_an_engines_error_is_told_as_openais(status: int, body: Any, seen: int, words: str) -> None:
    error = error_of(status, body)
    assert error.status == seen
    assert words in error.message


def test_the_field_to_blame_is_named() -> None:
    error = error_of(422, SCHEMA)
    assert (error.param, error.type, error.retry) == (
        "temperature",
        "invalid_request_error",
        False,
    )


def test_too_long_a_prompt_has_openais_code() -> None:
    assert error_of(400, {"error": "max_seq_len is 9"}).code == "context_length_exceeded"


def test_an_endless_reason_is_cut() -> None:
    assert len(error_of(500, {"error": "x" * 10**6}).message) == 2000
