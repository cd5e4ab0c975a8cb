"""What a key and a role's name lead to."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.gateway_nginx.conftest import CLINIC, DESK, client
from tests.gateway_nginx.engine import OWN_NAME, TENSORS, Engine
from tests.gateway_nginx.running import RunningGateway


def ask(desk: httpx.Client, **body: Any) -> httpx.Response:
    return desk.post("/v1/completions", json=body)


def test_the_engine_is_asked_by_its_own_name_and_answers_by_the_roles(
    desk: httpx.Client, engine: Engine
) -> None:
    answer = ask(desk, model="architect", prompt="hello")
    assert answer.status_code == 200
    assert answer.json()["model"] == "architect"
    assert json.loads(engine.seen[-1].body) == {"model": OWN_NAME, "prompt": "hello"}
    assert ask(desk, model="sentry", prompt="hello").json()["model"] == "sentry"


@pytest.mark.parametrize(
    ("asked", "role"), [("desk/sentry", "sentry"), ("gemma", "architect"), ("llama", None)]
)
def test_a_role_may_be_called_by_its_demo_or_its_model(
    desk: httpx.Client, asked: str, role: str | None
) -> None:
    answer = ask(desk, model=asked)
    if role is None:
        assert "role `auditor` is not served now" in answer.json()["error"]["message"]
    else:
        assert answer.json()["model"] == role


def test_every_other_byte_of_a_body_arrives_as_it_was_sent(
    desk: httpx.Client, engine: Engine
) -> None:
    before = '{ "tools": [], "n":1.0, "seed": 12345678901234567890, "nested": {"model": "x"},\n"'
    after = '" :\t"architect" ,"text":"}\\"model\\":\\\\", "e":1e400,"é":{}}'
    sent = before + "mod\\u0065l" + after
    desk.post("/v1/completions", content=sent.encode()).raise_for_status()
    expected = sent.replace('"architect"', f'"{OWN_NAME}"')
    assert engine.seen[-1].body.decode() == expected


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not a JSON object"),
        (b"", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'{"model":"architect"} {}', "not a JSON object"),
        (b'{"model":NaN}', "not a JSON object"),
        (b"{}", "`model` names the role"),
        (b'{"model":7}', "`model` names the role"),
        (b'{"model":"sentry","model":"architect"}', "more than once"),
        (b'{"model":"sentry","mod\\u0065l":"architect"}', "more than once"),
    ],
)
def test_a_body_that_two_readers_could_read_differently_is_refused(
    desk: httpx.Client, engine: Engine, body: bytes, says: str
) -> None:
    before = len(engine.seen)
    answer = desk.post("/v1/chat/completions", content=body)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]
    assert len(engine.seen) == before


def test_an_unknown_role_is_told_the_known_ones(desk: httpx.Client) -> None:
    answer = ask(desk, model="nobody")
    assert answer.status_code == 404
    assert answer.json()["error"] == {
        "message": "no role `nobody` for this key; it has: architect, auditor, own-name, sentry",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }


def test_a_role_that_is_not_loaded_says_why_and_when_to_come_again(desk: httpx.Client) -> None:
    answer = ask(desk, model="auditor")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "17")
    assert answer.json()["error"]["message"] == (
        "role `auditor` is not served now: its engine is being exchanged"
    )
    assert answer.json()["error"]["code"] == "role_not_loaded"


def test_the_list_has_the_keys_roles_and_says_which_are_served_and_by_what(
    desk: httpx.Client,
) -> None:
    listed = desk.get("/v1/models").json()
    assert listed["object"] == "list"
    roles = {role["id"]: role for role in listed["data"]}
    assert list(roles) == ["architect", "auditor", "own-name", "sentry"]
    assert roles["architect"]["berth"] == {
        "model": "gemma",
        "engine": "vllm",
        "serving": True,
        "reason": None,
        "fallback": "gemma-moe",
    }
    assert roles["auditor"]["berth"]["serving"] is False
    assert roles["auditor"]["berth"]["reason"] == "its engine is being exchanged"
    assert desk.get("/v1/models/sentry").json() == roles["sentry"]
    assert desk.get("/v1/models/nobody").status_code == 404


def test_an_answer_of_a_fallback_says_so(desk: httpx.Client) -> None:
    assert ask(desk, model="architect").headers["x-berth-fallback"] == "gemma-moe"
    assert "x-berth-fallback" not in ask(desk, model="sentry").headers


@pytest.mark.parametrize("key", [None, "wrong", DESK + "x", DESK[:-1], CLINIC.upper()])
def test_without_a_known_key_there_is_no_answer(
    shared: RunningGateway, engine: Engine, key: str | None
) -> None:
    before = len(engine.seen)
    with client(shared, key) as stranger:
        for answer in (ask(stranger, model="architect"), stranger.get("/v1/models")):
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
    assert len(engine.seen) == before


def test_two_demos_keys_do_not_open_each_others_roles(
    shared: RunningGateway, desk: httpx.Client, engine: Engine, other_engine: Engine
) -> None:
    with client(shared, CLINIC) as clinic:
        assert ask(clinic, model="nurse").json()["model"] == "nurse"
        before = (len(engine.seen), len(other_engine.seen))
        for name in ("architect", "desk/architect", "gemma", "clinic/architect", OWN_NAME):
            refused = ask(clinic, model=name)
            assert refused.status_code == 404
            assert refused.json()["error"]["message"].endswith("for this key; it has: nurse")
        for name in ("nurse", "clinic/nurse", "med", "desk/nurse"):
            assert ask(desk, model=name).status_code == 404
        path = "/roles/architect/v2/models/architect"
        assert clinic.get(f"{path}/ready").status_code == 404
        assert clinic.post(f"{path}/generate", json={}).status_code == 404
        assert (len(engine.seen), len(other_engine.seen)) == before


def test_no_header_of_the_client_reaches_an_engine(desk: httpx.Client, engine: Engine) -> None:
    headers = {
        "X-Berth-Control": "stolen",
        "Cookie": "a=b",
        "Proxy-Authorization": "Basic eA==",
        "X-Forwarded-For": "10.0.0.1",
        "Connection": "keep-alive, X-Custom",
        "X-Custom": "1",
        "Triton-Request-Anything": "1",
        "X-Request-Id": "mine-1",
    }
    desk.post("/v1/completions", json={"model": "architect"}, headers=headers)
    assert engine.seen[-1].headers == {
        "host": "localhost",
        "content-length": str(len(engine.seen[-1].body)),
        "accept": "*/*",
        "content-type": "application/json",
        "x-request-id": "mine-1",
    }


def test_an_engines_headers_do_not_reach_the_client(desk: httpx.Client) -> None:
    answer = ask(desk, model="architect")
    assert "x-engine-secret" not in answer.headers
    assert answer.headers["server"] == "nginx"
    assert answer.headers["x-request-id"] != "theirs"


def test_a_request_keeps_its_id_if_it_is_sane_and_gets_one_if_not(desk: httpx.Client) -> None:
    for given in ("abc-1.2_3", "a" * 64):
        answer = desk.get("/v1/models", headers={"X-Request-Id": given})
        assert answer.headers["x-request-id"] == given
    for given in ("a" * 65, "a b", 'a"b', ""):
        made = desk.get("/v1/models", headers={"X-Request-Id": given}).headers["x-request-id"]
        assert made != given
        assert len(made) == 32


def test_the_log_has_one_line_a_request_and_neither_key_nor_prompt(
    shared: RunningGateway, desk: httpx.Client, engine: Engine
) -> None:
    desk.post(
        "/v1/completions?api_key=in-the-query",
        json={"model": "architect", "prompt": "a secret prompt"},
        headers={"X-Request-Id": "logged-1"},
    ).raise_for_status()
    line = shared.logged("logged-1")
    assert line.pop("time").startswith("20")
    assert 0 <= line.pop("first_byte_s") <= line.pop("total_s") < 10
    assert line.pop("bytes") > 0
    assert line == {
        "request_id": "logged-1",
        "demo": "desk",
        "role": "architect",
        "model": "architect",
        "engine": "vllm",
        "replica": engine.address,
        "method": "POST",
        "path": "/v1/completions",
        "status": 200,
        "outcome": "ok",
        "prompt_tokens": 7,
        "completion_tokens": 3,
    }
    log = (shared.place / "access.log").read_text()
    for hidden in ("a secret prompt", DESK, "in-the-query", "engine-key"):
        assert hidden not in log


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        ('400 {"error":{"message":"m","type":"T","param":"p","code":400}}', 400, "m"),
        (
            '400 {"object":"error","message":"flat","type":"BadRequestError","code":400}',
            400,
            "flat",
        ),
        ('401 {"error":"Unauthorized"}', 401, "Unauthorized"),
        ('422 {"detail":[{"loc":["body"],"msg":"bad"}]}', 400, "bad"),
        ('400 {"detail":"Unknown model"}', 400, "Unknown model"),
        ("500 plain words", 500, "plain words"),
        ("500", 500, "the engine answered 500"),
    ],
)
def test_whatever_shape_an_engines_error_has_clients_see_openais(
    desk: httpx.Client, sent: str, status: int, message: str
) -> None:
    answer = ask(desk, model="architect", prompt=f"error {sent}")
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    kinds = {400: "invalid_request_error", 401: "authentication_error", 500: "server_error"}
    assert answer.json()["error"]["type"] == kinds[status]
    assert message in answer.json()["error"]["message"]
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [400, 500])
def test_a_context_that_is_too_long_has_openais_code_whatever_the_status(
    desk: httpx.Client, status: int
) -> None:
    said = "The decoder prompt (length 9) is longer than the maximum model length of 8."
    answer = ask(desk, model="architect", prompt=f"error {status} {said}")
    assert answer.json()["error"]["code"] == "context_length_exceeded"


def test_an_engine_that_is_overloaded_says_when_to_come_again(desk: httpx.Client) -> None:
    assert ask(desk, model="architect", prompt="error 503").headers["retry-after"] == "10"


def test_kserves_protocol_reaches_the_roles_own_model_and_no_other(
    desk: httpx.Client, engine: Engine
) -> None:
    base = "/roles/architect/v2/models/architect"
    for method, path, upstream in (
        ("GET", base, "/v2/models/demo.gemma"),
        ("GET", f"{base}/ready", "/v2/models/demo.gemma/ready"),
        ("GET", "/roles/architect/v2/health/ready", "/v2/models/demo.gemma/ready"),
        ("POST", f"{base}/infer", "/v2/models/demo.gemma/infer"),
        ("POST", f"{base}/generate", "/v2/models/demo.gemma/generate"),
        ("POST", f"{base}/generate_stream", "/v2/models/demo.gemma/generate_stream"),
    ):
        answer = desk.request(method, path, json={"a": []} if method == "POST" else None)
        assert answer.status_code == 200, path
        assert 'name":"architect"' in answer.text
        assert (engine.seen[-1].method, engine.seen[-1].path) == (method, upstream)
    before = len(engine.seen)
    for path in (f"{base}/load", f"{base}/config", "/roles/architect/v2/repository/index",
                 "/roles/architect/v2/models/sentry/infer", "/roles/architect/v2",
                 f"{base}/versions/1/infer", "/roles/architect/v2/health/live"):  # fmt: skip
        for method in ("GET", "POST"):
            answer = desk.request(method, path)
            assert answer.status_code == 404, path
            assert answer.json() == {"error": "nothing is here"} or "/models/" not in path
    assert desk.get("/roles/own-name/v2/models/own-name").status_code == 404
    assert len(engine.seen) == before


def test_a_roles_metadata_has_the_roles_name_and_its_tensors_their_own(desk: httpx.Client) -> None:
    said = desk.get("/roles/architect/v2/models/architect").json()
    assert said == {"name": "architect", "inputs": [{"name": "text_input"}]}


def test_binary_tensors_pass_through_and_the_answers_name_is_the_roles(
    desk: httpx.Client, engine: Engine
) -> None:
    body = b'{"inputs":[]}\x00\xff\x00'
    answer = desk.post(
        "/roles/architect/v2/models/architect/infer",
        content=body,
        headers={"Inference-Header-Content-Length": "13"},
    )
    answer.raise_for_status()
    seen = engine.seen[-1]
    assert seen.body == body
    assert seen.headers["inference-header-content-length"] == "13"
    assert seen.headers["content-type"] == "application/octet-stream"
    length = int(answer.headers["inference-header-content-length"])
    told = json.loads(answer.content[:length])
    assert told == {"model_name": "architect", "outputs": [{"name": "text_output"}]}
    assert answer.content[length:] == TENSORS
