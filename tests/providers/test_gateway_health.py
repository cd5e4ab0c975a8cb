"""What a host's gateway and adapter say of themselves, over a real sshd."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from components.providers import gateway_health
from components.providers.gateway_health import GatewayHealth
from components.providers.ssh import Session, open_session
from tests.engines.serving import serving
from tests.providers.local_sshd import LocalSshd, free_port

Answer = TypeVar("Answer")


def asked(sshd: LocalSshd, what: Callable[[Session], Coroutine[Any, Any, Answer]]) -> Answer:
    async def ask() -> Answer:
        async with open_session(sshd.ssh) as session:
            return await what(session)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        ({"status": "ok", "roles": []}, ""),
        ({"status": "ok", "routes_refused": {"desk": "x:\n  not JSON"}}, "desk stays as it was: x"),
    ],
)
def test_an_adapter_tells_whose_routes_it_could_not_read(
    sshd: LocalSshd, said: dict[str, Any], trouble: str
) -> None:
    async def ask() -> str:
        app = Starlette(routes=[Route("/health", lambda _: JSONResponse(said))])
        async with serving(app) as base, open_session(sshd.ssh) as session:
            return await gateway_health.adapter_trouble(session, int(base.rpartition(":")[2]))

    found = asyncio.run(ask())
    assert found.startswith(trouble)
    assert "\n" not in found
    assert bool(found) is bool(trouble)


def test_one_that_does_not_run_does_not_answer(sshd: LocalSshd) -> None:
    port = free_port()
    told = asked(sshd, lambda session: gateway_health.adapter_trouble(session, port))
    assert told == "it does not answer"
    # No gateway of Berth's runs on the machine of the tests.
    silent = asked(sshd, gateway_health.gateway_health)
    assert silent.trouble == "it does not answer"
    assert silent.why_not("desk", "clerk", "triton@0.service") == ""


def gateway_says(sshd: LocalSshd, status: dict[str, Any]) -> GatewayHealth:
    sshd.executable("python3", f"#!/bin/sh\necho '{json.dumps(status)}'\n")
    try:
        return asked(sshd, gateway_health.gateway_health)
    finally:
        (sshd.bin / "python3").unlink()


def test_a_gateway_tells_which_files_it_left_out_and_why(sshd: LocalSshd) -> None:
    left_out = [{"file": "desk.json", "why": "no such key"}]
    told = gateway_says(sshd, {"left_out": left_out, "demos": {}})
    assert told.trouble == "desk.json is left out: no such key"


def test_a_role_that_clients_get_nothing_of_is_told_with_the_reason(sshd: LocalSshd) -> None:
    def replica(unit: str, trouble: str | None, api: str = "openai") -> dict[str, Any]:
        return {"api": api, "unit": unit, "trouble": trouble}

    replicas = [replica("a", None), replica("b", "its health is 500"), replica("a", "x", "kserve")]
    roles = {
        "half": {"trouble": None, "replicas": replicas},
        "shut": {"trouble": "its model is being replaced", "replicas": [replica("a", None)]},
    }
    told = gateway_says(sshd, {"left_out": [], "demos": {"desk": roles}})
    assert told.trouble == ""
    assert told.why_not("desk", "half", "a") == ""
    assert told.why_not("desk", "half", "b") == "its health is 500"
    assert told.why_not("desk", "shut", "a") == "its model is being replaced"
    assert told.why_not("desk", "gone", "a") == "the gateway does not know it"
