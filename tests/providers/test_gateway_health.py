"""What a host's gateway and adapter say of themselves, over a real sshd."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from components.providers import gateway_health
from components.providers.ssh import Session, open_session
from tests.engines.serving import serving
from tests.providers.local_sshd import LocalSshd, free_port


def asked(sshd: LocalSshd, what: Callable[[Session], Coroutine[Any, Any, str]]) -> str:
    async def ask() -> str:
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
    assert asked(sshd, gateway_health.gateway_trouble) == "it does not answer"


def test_a_gateway_tells_which_files_it_left_out_and_why(sshd: LocalSshd) -> None:
    status = {"left_out": [{"file": "desk.json", "why": "no such key"}], "demos": {}}
    sshd.executable("python3", f"#!/bin/sh\necho '{json.dumps(status)}'\n")
    try:
        told = asked(sshd, gateway_health.gateway_trouble)
    finally:
        (sshd.bin / "python3").unlink()
    assert told == "desk.json is left out: no such key"
