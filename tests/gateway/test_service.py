"""What the service does around the answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.engines.asking import ALL, fake
from tests.engines.serving import until
from tests.gateway.running import Running, running
from tests.providers.local_sshd import free_port

HI: Any = [{"role": "user", "content": "hi"}]
CHAT = {"model": "shop/architect", "messages": HI}
CUT = 150
"""Streams that clients cut."""


async def samples(service: Running) -> dict[tuple[str, str], float]:
    """Name and status or role → value."""
    text = (await service.http.get(f"{service.base}/metrics")).text
    return {
        (sample.name, sample.labels.get("status") or sample.labels.get("role", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_errors_of_every_kind_have_openais_shape(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            big = b'{"model": "' + b"a" * 9 * 2**20 + b'"}'
            for answer, status in (
                (await service.post("/v1/chat/completions", b"{"), 400),
                (await service.post("/v1/chat/completions", CHAT | {"model": "x"}), 404),
                (await service.post("/v1/completions", big), 413),
                (await service.post("/v1/engines", {}), 404),
                (await service.http.get(f"{service.base}/v1/models/m"), 404),
                (await service.post("/v2/repository/index", {}), 404),
                (await service.http.get(f"{service.base}/v1/completions"), 405),
            ):
                assert answer.status_code == status
                error = answer.json()["error"]
                assert error.keys() == {"message", "type", "param", "code"}
                assert error["type"] == "invalid_request_error"

    asyncio.run(do())


def test_a_fault_of_the_service_tells_nothing_of_its_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boom(*_: object) -> None:
        raise RuntimeError("inside")

    async def do() -> None:
        async with running(tmp_path, {"architect": fake("vllm")}) as service:
            monkeypatch.setattr("gateway.openai_paths.id_of", boom)
            answer = await service.post("/v1/chat/completions", CHAT)
            assert answer.status_code == 500
            assert "inside" not in answer.text
            assert answer.json()["error"]["type"] == "server_error"

    asyncio.run(do())


def test_a_callers_request_id_names_the_answer_and_reaches_the_engine(tmp_path: Path) -> None:
    server = fake("vllm")

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            url = f"{service.base}/v1/chat/completions"
            for given, kept in (("abc-1", True), ("no good\tid", False), ("x" * 65, False)):
                headers = {"X-Request-Id": given}
                answer = (await service.http.post(url, json=CHAT, headers=headers)).json()
                assert (answer["id"] == f"chatcmpl-{given}") is kept
            sent = server.headers[0]["x-request-id"]
            assert sent.startswith("abc-1-")  # And more: a caller may use its id twice.

    asyncio.run(do())


def test_metrics_have_one_name_for_each_thing_whatever_the_engine(tmp_path: Path) -> None:
    fakes = {
        "architect": fake("vllm", metrics='vllm:num_requests_waiting{model_name="x"} 4\n'),
        "auditor": fake("triton-vllm", metrics='nv_inference_pending_request_count{model="m"} 5\n'),
        "sentry": fake("trtllm-serve", prometheus="trtllm_num_requests_waiting 6\n"),
        "dead": fake("triton-openai", metrics="{"),
    }

    async def do() -> None:
        async with running(tmp_path, fakes) as service:
            found = await samples(service)
            name = "berth_engine_requests_waiting"
            assert [found[name, f"shop/{role}"] for role in ("architect", "auditor", "sentry")] == [
                4,
                5,
                6,
            ]
            assert [found["berth_engine_up", f"shop/{role}"] for role in ("dead", "sentry")] == [
                0,
                1,
            ]

    asyncio.run(do())


def test_requests_are_counted_by_what_became_of_them(tmp_path: Path) -> None:
    server = fake("vllm", endless=True)

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            stream = await service.openai.chat.completions.create(
                model="shop/architect", messages=HI, stream=True
            )
            await anext(aiter(stream))
            assert (await samples(service))["berth_adapter_requests_running", "shop/architect"] == 1
            await stream.close()
            await until(lambda: server.running == 0, 1)
            server.endless = False
            await service.post("/v1/chat/completions", CHAT)
            server.refuse = (503, {"error": "no"})
            await service.post("/v1/chat/completions", CHAT)
            await service.post("/v1/stream", CHAT)
            found = await samples(service)
            counted = {s: found["berth_adapter_requests_total", s] for s in ("200", "499", "503")}
            assert counted == {"200": 1, "499": 1, "503": 2}
            assert found["berth_adapter_requests_running", "shop/architect"] == 0

    asyncio.run(do())


@pytest.mark.parametrize("kind", ALL)
def test_many_streams_cut_at_any_point_leave_nothing_running(kind: str, tmp_path: Path) -> None:
    server = fake(kind, endless=True)

    async def cut(service: Running, tokens: int) -> None:
        url = f"{service.base}/v1/chat/completions"
        body = CHAT | {"stream": True}
        async with service.http.stream("POST", url, json=body) as answer:
            lines = answer.aiter_lines()
            for _ in range(tokens):
                await anext(lines)

    async def do() -> None:
        async with running(tmp_path, {"architect": server}) as service:
            await asyncio.gather(*(cut(service, number % 12) for number in range(CUT)))
            await until(lambda: server.running == 0, 3)

            async def none_left() -> bool:
                return (await samples(service))[
                    "berth_adapter_requests_running", "shop/architect"
                ] == 0

            await until(none_left, 3)
            assert (await samples(service))["berth_adapter_requests_total", "499"] == CUT

    asyncio.run(do())


def test_a_roles_health_is_its_engines(tmp_path: Path) -> None:
    async def do() -> None:
        async with running(tmp_path, {"architect": fake("triton-vllm")}) as service:
            service.routes["dead"] = service.routes["architect"] | {
                "base_url": f"http://127.0.0.1:{free_port()}"
            }
            service.write()
            for role, status in (("architect", 200), ("dead", 503), ("nobody", 404)):
                answer = await service.http.get(f"{service.base}/health/shop/{role}")
                assert answer.status_code == status, role
            assert (await service.http.get(f"{service.base}/health")).status_code == 200

    asyncio.run(do())
