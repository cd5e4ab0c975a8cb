"""The orchestrator's events."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.engines.asking import ALL, fake
from tests.engines.serving import until
from tests.gateway.running import Running, running

CHAT = {"model": "shop/architect", "messages": [{"role": "user", "content": "hi"}]}


async def events(service: Running, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    answer = await service.post("/v1/stream", body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in answer.text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("body", [CHAT, {"model": "shop/architect", "prompt": "hi"}])
def test_every_engine_has_the_same_events_in_the_same_order(
    kind: str, body: dict[str, Any], tmp_path: Path
) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake(kind)}) as service:
            found = await events(service, body)
            names = [name for name, _ in found]
            assert names == ["started", *["token"] * 4, "metrics", "end"]
            assert (found[0][1]["role"], found[0][1]["engine"]) == ("architect", kind)
            assert "".join(data["text"] for name, data in found if name == "token") == (
                "Hello, wörld!"
            )
            measured = found[-2][1]
            assert 0 < measured["time_to_first_token_s"] <= measured["seconds"]
            assert measured["completion_tokens"] == (None if kind == "triton-llmapi" else 4)
            assert found[-1][1] == {"finish_reason": "stop"}

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_failure_is_the_last_event(kind: str, tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake(kind, break_after=1)}) as service:
            found = await events(service, CHAT)
            assert [name for name, _ in found] == ["started", "token", "error"]
            assert found[-1][1]["error"]["code"] == "engine_broken"
            assert (found[-1][1]["status"], found[-1][1]["retry"]) == (502, True)

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_a_client_that_goes_stops_the_engine(kind: str, tmp_path: Path) -> None:
    server = fake(kind, endless=True)

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            url = f"{service.base}/v1/stream"
            async with service.http.stream("POST", url, json=CHAT) as answer:
                arriving = answer.aiter_bytes()  # Kept: collected, it would close the connection.
                await anext(arriving)
                await until(lambda: server.running == 1, 1)
            await until(lambda: server.running == 0, 1)

    asyncio.run(do())


def test_a_wrong_body_has_a_status_and_no_events(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            for body, field in ((CHAT | {"n": 2}, "n"), (CHAT | {"top_p": 7}, "top_p")):
                answer = await service.post("/v1/stream", body)
                assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)

    asyncio.run(do())
