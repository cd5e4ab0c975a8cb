"""Routes change under running requests, and a wrong file changes nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import openai
import pytest

from gateway import config
from gateway.table import YOUNG_NS
from models.refusal import Refusal
from tests.engines.asking import fake
from tests.engines.serving import until
from tests.gateway.running import Running, put, running, write

HI: Any = [{"role": "user", "content": "hi"}]
ROUTE = {"engine": "vllm", "base_url": "http://127.0.0.1:8000", "model": "m"}


def test_a_role_is_there_with_the_next_request_after_the_file_changed(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            service.routes["worker"] = service.routes["architect"]
            service.write()
            answer = await service.openai.chat.completions.create(model="shop/worker", messages=HI)
            assert answer.model == "shop/worker"
            del service.routes["architect"]
            service.write()
            models = await service.openai.models.list()
            assert [model.id for model in models.data] == ["shop/worker"]

    asyncio.run(do())


@pytest.mark.parametrize("kind", ["vllm", "triton-vllm"])
def test_a_stream_goes_on_when_its_route_goes(kind: str, tmp_path: Path) -> None:
    server = fake(kind, endless=True)

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            stream = await service.openai.chat.completions.create(
                model="shop/architect", messages=HI, stream=True
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


async def health(service: Running) -> dict[str, Any]:
    said: dict[str, Any] = (await service.http.get(f"{service.base}/health")).json()
    return said


def test_a_demos_file_that_is_wrong_leaves_its_routes_and_is_told_of(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            file = service.config / "routes.d/shop.json"
            good = file.read_text()
            for wrong in ("{", "[]", "[" * 100_000, good.replace('"vllm"', '"vlllm"')):
                put(file, wrong)
                assert await service.openai.chat.completions.create(
                    model="shop/architect", messages=HI
                )
                said = await health(service)
                assert said["roles"] == ["shop/architect"]
                assert str(file) in said["routes_refused"]["shop"]
            put(file, good)
            assert "routes_refused" not in await health(service)
            file.unlink()
            assert (await health(service))["roles"] == []

    asyncio.run(do())


def test_a_demos_wrong_file_keeps_nobody_elses_from_changing(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            route = service.routes["architect"]
            put(service.config / "routes.d/shop.json", "{")
            put(service.config / "routes.d/desk.json", {"version": 1, "routes": {"clerk": route}})
            put(service.config / "routes.d/no demo.json", "{")
            put(service.config / "routes.d/half.json.new", "{")
            said = await health(service)
            assert said["roles"] == ["desk/clerk", "shop/architect"]
            assert list(said["routes_refused"]) == ["shop"]
            with pytest.raises(openai.NotFoundError, match=r"known: desk/clerk\b"):
                await service.openai.chat.completions.create(model="desk/cook", messages=HI)

    asyncio.run(do())


def test_two_changes_within_one_step_of_the_kernels_clock_are_both_seen(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            route = service.routes["architect"]
            folder = service.config / "routes.d"
            for number in range(20):
                before = folder.stat().st_mtime_ns
                routes = {f"role-{number}": route}
                put(folder / "shop.json", {"version": 1, "routes": routes})
                os.utime(folder, ns=(before, before))
                assert (await health(service))["roles"] == [f"shop/role-{number}"]
                os.utime(folder)

    asyncio.run(do())


def test_what_did_not_change_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            await asyncio.sleep(YOUNG_NS / 1e9 * 1.5)  # Past it, a change is seen by its stamp.
            await health(service)
            reads: list[Path] = []
            monkeypatch.setattr(config, "read_adapter", reads.append)
            for _ in range(5):
                await health(service)
            assert not reads

    asyncio.run(do())


def test_an_adapters_own_file_that_is_wrong_leaves_what_it_said(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            put(service.config / "adapter.json", "{")
            service.routes["worker"] = service.routes["architect"]
            put(service.config / "routes.d/shop.json", {"version": 1, "routes": service.routes})
            said = await health(service)
            assert said["roles"] == ["shop/architect", "shop/worker"]
            assert "not JSON" in said["routes_refused"]["adapter.json"]

    asyncio.run(do())


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ({"a": ROUTE | {"engine": "vlllm"}}, "no engine is called 'vlllm'; known: triton-"),
        ({"a": ROUTE | {"base_url": "http://h/path"}}, "routes.a.base_url"),
        ({"A": ROUTE}, "routes.A"),
        ({"a": ROUTE | {"limits": {"max_token": 1}}}, "did you mean `max_tokens`?"),
        ({"a": ROUTE | {"key": "k"}}, "secrets.d/shop.json: not readable: No such file"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_that_is_wrong(
    routes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    write(tmp_path, routes)
    with pytest.raises(Refusal) as caught:
        config.read_demo(tmp_path, "shop")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"listen": "0.0.0.0:80"}, "loopback address with a port, not on '0.0.0.0:80'"),
        ({"listen": "localhost"}, "loopback address with a port, not on 'localhost'"),
        ({"version": 2}, "version"),
    ],
)
def test_an_adapters_own_file_is_refused_with_what_is_wrong(
    more: dict[str, Any], words: str, tmp_path: Path
) -> None:
    write(tmp_path, {}, **more)
    with pytest.raises(Refusal) as caught:
        config.read_adapter(tmp_path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "header", "value"),
    [
        ("vllm", "authorization", "Bearer s3cret"),
        ("triton-vllm", "x-berth-control", "s3cret"),
    ],
)
def test_an_engines_key_is_the_demos_secret_sent_in_that_engines_way(
    kind: str, header: str, value: str, tmp_path: Path
) -> None:
    server = fake(kind)

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            secrets = service.config / "secrets.d/shop.json"
            service.routes["architect"]["key"] = "engine"
            put(secrets, {"engine": "s3cret"})
            service.write()
            await service.openai.completions.create(model="shop/architect", prompt="p")
            assert server.headers[-1][header] == value
            put(secrets, {"engine": "another"})
            await service.openai.completions.create(model="shop/architect", prompt="p")
            assert "another" in server.headers[-1][header]

    asyncio.run(do())


@pytest.mark.parametrize(
    "wrong", ['{"engine": s3cret}', '["s3cret"]', '{"engine": {"a": "s3cret"}}']
)
def test_what_is_wrong_with_secrets_is_told_without_them(wrong: str, tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            service.routes["architect"]["key"] = "engine"
            put(service.config / "secrets.d/shop.json", wrong)
            service.write()
            said = (await health(service))["routes_refused"]["shop"]
            assert "secrets.d/shop.json" in said
            assert "s3cret" not in said

    asyncio.run(do())
