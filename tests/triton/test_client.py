"""What Triton's HTTP API answers, as the client hands it on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from components.providers.triton_client import ModelState, Rejected, ServerDown, TritonClient
from tests.providers.local_sshd import free_port
from tests.triton.asking import ask
from tests.triton.real_triton import RealTriton

pytestmark = pytest.mark.triton


def _load(model: str) -> Callable[[TritonClient], Coroutine[Any, Any, None]]:
    return lambda triton: triton.load(model, timeout_s=20)


def _rejected(triton: RealTriton, model: str) -> Rejected:
    with pytest.raises(Rejected) as caught:
        ask(triton, _load(model))
    return caught.value


def test_an_unknown_model_fails_with_500_and_the_poll_as_its_reason(triton: RealTriton) -> None:
    error = _rejected(triton, "nobody")
    assert error.status == 500
    assert error.reason == "failed to load 'nobody', failed to poll from model repository"


def test_a_configuration_that_does_not_parse_fails_as_an_unknown_model(triton: RealTriton) -> None:
    triton.entry("garbage")
    (triton.place / "models" / "garbage" / "config.pbtxt").write_text("{ not pbtxt")
    assert _rejected(triton, "garbage").status == 500


def test_a_missing_version_directory_fails_with_400(triton: RealTriton) -> None:
    triton.entry("unversioned")
    place = triton.place / "models" / "unversioned"
    (place / "1" / "model.json").unlink()
    (place / "1").rmdir()
    error = _rejected(triton, "unversioned")
    assert error.status == 400
    assert "at least one version must be available" in error.reason


def test_an_engine_that_raises_fails_with_400_and_its_own_words(triton: RealTriton) -> None:
    triton.entry("raising", raise_on_load="CUDA out of memory. Tried to allocate 2.00 GiB")
    error = _rejected(triton, "raising")
    assert error.status == 400
    assert "CUDA out of memory. Tried to allocate 2.00 GiB" in error.reason


def test_the_control_api_is_closed_without_its_key_and_open_with_it(triton: RealTriton) -> None:
    with pytest.raises(Rejected) as caught:
        ask(triton, lambda client: client.index(), key="wrong")
    assert caught.value.status == 403
    ask(triton, lambda client: client.index())


def test_liveness_needs_no_key(triton: RealTriton) -> None:
    assert ask(triton, lambda client: client.live(), key="wrong")


def test_grpc_is_closed_and_http_listens_on_the_loopback_only(triton: RealTriton) -> None:
    assert triton.process is not None
    listening = subprocess.run(["ss", "-Htlnp"], capture_output=True, text=True, check=True).stdout
    ours = [line.split()[3] for line in listening.splitlines() if f"={triton.process.pid}," in line]
    assert set(ours) == {f"127.0.0.1:{triton.port}"}


def test_an_entry_that_was_never_loaded_has_no_state(triton: RealTriton) -> None:
    triton.entry("fresh")
    assert ask(triton, lambda client: client.index())["fresh"] == ModelState("")


def test_a_loaded_model_is_ready_answers_and_shows_configuration_and_statistics(
    triton: RealTriton,
) -> None:
    triton.entry("whole", digest="d7", answer="Hello")

    async def everything(client: TritonClient) -> list[Any]:
        await client.load("whole", timeout_s=20)
        answer = await client.generate("whole", "Hi", {"max_tokens": 1}, timeout_s=5)
        return [
            (await client.index())["whole"].state,
            await client.model_ready("whole"),
            (await client.config("whole"))["parameters"]["berth_digest"]["string_value"],
            answer["text_output"],
            (await client.statistics("whole"))["model_stats"][0]["name"],
        ]

    assert ask(triton, everything) == ["READY", True, "d7", "Hello", "whole"]


def test_an_unload_of_what_is_not_loaded_succeeds(triton: RealTriton) -> None:
    ask(triton, lambda client: client.unload("nobody"))


def test_a_configuration_loaded_by_hand_survives_a_plain_load_but_not_an_unload(
    triton: RealTriton,
) -> None:
    triton.entry("sticky")
    by_hand = {
        "name": "sticky",
        "backend": "vllm",
        "model_transaction_policy": {"decoupled": True},
        "instance_group": [{"count": 1, "kind": "KIND_MODEL"}],
    }
    triton.by_hand("load", "sticky", {"parameters": {"config": json.dumps(by_hand)}})
    ask(triton, _load("sticky"))
    assert "berth_digest" not in ask(triton, lambda client: client.config("sticky"))["parameters"]


def test_strict_readiness_fails_after_one_failed_load_and_liveness_does_not(
    own_triton: RealTriton,
) -> None:
    assert ask(own_triton, lambda client: client.ready())
    own_triton.entry("bad", raise_on_load="no")
    _rejected(own_triton, "bad")
    assert not ask(own_triton, lambda client: client.ready())
    assert ask(own_triton, lambda client: client.live())


def test_no_server_is_told_apart_from_a_server_that_rejects(triton: RealTriton) -> None:
    port, triton.port = triton.port, free_port()
    try:
        with pytest.raises(ServerDown):
            ask(triton, lambda client: client.index())
    finally:
        triton.port = port
