"""Routes change under running requests, and a wrong file changes nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.config import read
from models.refusal import Refusal
from tests.engines.asking import fake
from tests.engines.serving import until
from tests.gateway.running import running, write

HI: Any = [{"role": "user", "content": "hi"}]
ROUTE = {"engine": "vllm", "base_url": "http://127.0.0.1:8000", "model": "m"}


def test_a_role_is_there_with_the_next_request_after_the_file_changed(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            service.routes["worker"] = service.routes["architect"]
            service.write()
            answer = await service.openai.chat.completions.create(model="worker", messages=HI)
            assert answer.model == "worker"
            del service.routes["architect"]
            service.write()
            models = await service.openai.models.list()
            assert [model.id for model in models.data] == ["worker"]

    asyncio.run(do())


@pytest.mark.parametrize("kind", ["vllm", "triton-vllm"])
def test_a_stream_goes_on_when_its_route_goes(kind: str, tmp_path: Path) -> None:
    server = fake(kind, endless=True)

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            stream = await service.openai.chat.completions.create(
                model="architect", messages=HI, stream=True
            )
            chunks = aiter(stream)
            await anext(chunks)
            service.routes.clear()
            service.write()
            assert not (await service.openai.models.list()).data
            for _ in range(20):
                assert (await anext(chunks)).choices
            await stream.close()
            await until(lambda: server.running == 0, 1)

    asyncio.run(do())


def test_a_file_that_is_wrong_leaves_the_routes_and_is_told_of(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            good = service.config.read_text()
            for wrong in ("{", "[]", good.replace('"vllm"', '"vlllm"')):
                service.config.write_text(wrong)
                assert await service.openai.chat.completions.create(model="architect", messages=HI)
                health = (await service.http.get(f"{service.base}/health")).json()
                assert health["roles"] == ["architect"]
                assert str(service.config) in health["routes_refused"]
            service.config.unlink()
            assert (await service.openai.models.list()).data
            service.write()
            health = (await service.http.get(f"{service.base}/health")).json()
            assert "routes_refused" not in health

    asyncio.run(do())


@pytest.mark.parametrize(
    ("routes", "more", "words"),
    [
        ({"a": ROUTE | {"engine": "vlllm"}}, {}, "no engine is called 'vlllm'; known: triton-"),
        ({"a": ROUTE | {"base_url": "http://h/path"}}, {}, "routes.a.base_url"),
        ({"A": ROUTE}, {}, "routes.A"),
        ({"a": ROUTE | {"limits": {"max_token": 1}}}, {}, "did you mean `max_tokens`?"),
        ({}, {"listen": "0.0.0.0:80"}, "loopback address with a port, not on '0.0.0.0:80'"),
        ({}, {"listen": "localhost"}, "loopback address with a port, not on 'localhost'"),
        ({}, {"version": 2}, "version"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_that_is_wrong(
    routes: dict[str, Any], more: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "adapter.json"
    write(path, routes, **more)
    with pytest.raises(Refusal) as caught:
        read(path)
    assert words in str(caught.value)


def test_an_engines_key_is_read_from_its_file_and_a_missing_one_refused(tmp_path: Path) -> None:
    server = fake("vllm")

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            key = tmp_path / "key"
            key.write_text("s3cret\n")
            service.routes["architect"]["key_file"] = str(key)
            service.write()
            await service.openai.chat.completions.create(model="architect", messages=HI)
            assert server.headers[-1]["authorization"] == "Bearer s3cret"  # type: ignore[union-attr]
            key.unlink()
            service.routes["other"] = service.routes["architect"]
            service.write()
            health = (await service.http.get(f"{service.base}/health")).json()
            assert health["roles"] == ["architect"]
            assert "key: not readable" in health["routes_refused"]

    asyncio.run(do())
