"""Streams: as they come, by the role's name, and never silent when they break."""

from __future__ import annotations

import io
import itertools
import json
import random
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import httpx
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.gateway import TlsFiles
from tests.gateway_nginx.conftest import DESK, Started, client
from tests.gateway_nginx.declared import demo, gateway, role
from tests.gateway_nginx.engine import OWN_NAME, Engine
from tests.gateway_nginx.running import RunningGateway, until
from tests.providers.local_sshd import free_port


def body(prompt: str, **more: Any) -> dict[str, Any]:
    return {"model": "architect", "prompt": prompt, "stream": True, **more}


def test_each_token_arrives_before_the_next_is_made(desk: httpx.Client, engine: Engine) -> None:
    engine.release.clear()
    with desk.stream("POST", "/v1/completions", json=body("hang 2")) as answer:
        lines = answer.iter_lines()
        first = [next(lines) for _ in range(3)]
        engine.release.set()
        rest = list(lines)
    assert [json.loads(line[6:])["choices"][0]["text"] for line in (first[0], first[2])] == [
        "0",
        "1",
    ]
    assert rest[-2:] == ["data: [DONE]", ""]


def test_every_chunk_has_the_roles_name_and_tokens_are_logged(
    shared: RunningGateway, desk: httpx.Client
) -> None:
    answer = desk.post(
        "/v1/completions", json=body("count 5"), headers={"X-Request-Id": "stream-1"}
    )
    chunks = [json.loads(line[6:]) for line in answer.text.split("\n") if line[6:7] == "{"]
    assert len(chunks) == 6
    assert {chunk["model"] for chunk in chunks} == {"architect"}
    assert answer.headers["content-type"].startswith("text/event-stream")
    line = shared.logged("stream-1")
    assert (line["outcome"], line["prompt_tokens"], line["completion_tokens"]) == ("ok", 7, 3)
    assert line["first_byte_s"] < line["total_s"]


EVENTS = [
    f'{{"id":"1","model":"{OWN_NAME}","choices":[]}}',
    f'{{"choices":[{{"model":"{OWN_NAME}","t":"a\\"model\\":\\n"}}],"model" : "{OWN_NAME}"}}',
    '{"no":"name"}',
    f'{{"model":"{OWN_NAME}","usage":null,"text":"[DONE] \\"error\\""}}',
    f'{{"id":"1","model":"{OWN_NAME}-2","choices":[]}}',
    '{"id":"1","model":1}',
    '{"id":"1","model":12}',
]


@given(
    st.lists(st.sampled_from(EVENTS), max_size=6),
    st.sampled_from(["\n\n", "\r\n\r\n", " \n\n"]),
    st.lists(st.integers(0, 900), max_size=6),
)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_however_a_stream_is_cut_into_pieces_the_client_reads_the_same(
    pieces_engine: PiecesEngine, events: list[str], end: str, cuts: list[int]
) -> None:
    text = "".join(f"data: {event}{end}" for event in events) + f": remark\n\ndata: [DONE]{end}"
    pieces_engine.cut(text.encode(), sorted(cuts))
    with client(pieces_engine.gateway, DESK) as open_client:
        answer = open_client.post("/v1/completions", json=body("x"))
    expected = []
    for event in events:
        decoded = json.loads(event)
        if "model" in decoded:
            decoded["model"] = "architect"
        expected.append(decoded)
    lines = [line.rstrip() for line in answer.text.split("\n")]
    got = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert got == expected
    assert [line for line in lines if line][-2:] == [": remark", "data: [DONE]"]


def broken_stream(open_client: httpx.Client, path: str, asked: dict[str, Any]) -> str:
    """What a client read of a stream that was cut off, which it sees by HTTP's framing."""
    read = io.StringIO()
    cut_off = pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read")
    with open_client.stream("POST", path, json=asked) as answer, cut_off:
        read.writelines(answer.iter_text())
    return read.getvalue().strip()


class PiecesEngine:
    """A bare socket that answers every request with the pieces it was given, one by one."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._pieces: list[bytes] = []
        self.gateway: RunningGateway
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self, text: bytes, cuts: list[int]) -> None:
        """What to answer, and where to cut it."""
        places = [0, *cuts, len(text)]
        pieces = [text[a:b] for a, b in itertools.pairwise(places)]
        self._pieces = [piece for piece in pieces if piece]

    def _serve(self) -> None:
        while True:
            try:
                open_socket, _ = self._socket.accept()
            except OSError:
                return
            with open_socket:
                open_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                health = open_socket.recv(65536).startswith(b"GET")
                kind = b"text/event-stream"
                head = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind
                open_socket.sendall(head + b"\r\nconnection: close\r\n\r\n")
                for piece in [] if health else self._pieces:
                    open_socket.sendall(piece)
                    time.sleep(0.001)

    def close(self) -> None:
        """End it."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def pieces_engine(started: Started) -> Any:
    """The engine, with a gateway before it."""
    engine = PiecesEngine()
    engine.gateway = started(
        gateway(), demo("desk", DESK, {"architect": role(f"127.0.0.1:{engine.port}")})
    )
    yield engine
    engine.close()


ENDED = {
    "error": {
        "message": "the engine ended before its answer did",
        "type": "server_error",
        "param": None,
        "code": "engine_ended",
    }
}


@pytest.mark.parametrize("prompt", ["die 2", "die 0"])
def test_an_engine_that_dies_in_its_answer_leaves_an_error_event_and_no_proper_end(
    shared: RunningGateway, desk: httpx.Client, prompt: str
) -> None:
    read = broken_stream(desk, "/v1/completions", body(prompt))
    assert json.loads(read.split("\n\n")[-1].strip().removeprefix("data: ")) == ENDED
    assert "[DONE]" not in read
    assert "the engine ended before its answer did" in shared.errors()


@pytest.mark.parametrize("prompt", ["stop 2", 'raw data: {"model":'])
def test_an_engine_that_ends_its_answer_too_early_leaves_an_error_event(
    shared: RunningGateway, desk: httpx.Client, prompt: str
) -> None:
    answer = desk.post("/v1/completions", json=body(prompt))
    events = [event for event in answer.text.split("\n\n") if event.strip()]
    assert json.loads(events[-1].removeprefix("\n").removeprefix("data: ")) == ENDED
    assert "[DONE]" not in answer.text
    assert shared.logged(answer.headers["x-request-id"])["outcome"] == "engine_ended"


@pytest.mark.parametrize(
    "error", ['{"error":"it broke"}', '{"object":"error","message":"it broke","code":500}']
)
def test_an_engines_error_event_takes_openais_shape_and_is_not_followed_by_another(
    shared: RunningGateway, desk: httpx.Client, error: str
) -> None:
    sent = f'raw data: {{"model":"{OWN_NAME}"}}\n\ndata: {error}\n\ndata: [DONE]\n\n'
    answer = desk.post("/v1/completions", json=body(sent))
    events = [event for event in answer.text.split("\n\n") if event]
    assert len(events) == 2
    assert json.loads(events[1][6:])["error"]["message"] == "it broke"
    assert "[DONE]" not in answer.text
    assert shared.logged(answer.headers["x-request-id"])["outcome"] == "engine_failed"


def test_an_error_of_null_is_none(shared: RunningGateway, desk: httpx.Client) -> None:
    sent = f'raw data: {{"model":"{OWN_NAME}","error":null}}\n\ndata: [DONE]\n\n'
    answer = desk.post("/v1/completions", json=body(sent))
    assert answer.text == 'data: {"model":"architect","error":null}\n\ndata: [DONE]\n\n'
    assert shared.logged(answer.headers["x-request-id"])["outcome"] == "ok"


def test_half_a_json_answer_is_not_taken_for_a_whole_one(desk: httpx.Client) -> None:
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
        desk.post("/v1/completions", json={"model": "architect", "prompt": "half"})


def test_the_orchestrators_framing_has_its_own_error_event(
    desk: httpx.Client, engine: Engine
) -> None:
    whole = desk.post("/v1/stream", json=body("tell 2")).text
    assert '"model":"architect"' in whole
    assert whole.endswith("event: end\ndata: {}\n\n")
    assert json.loads(engine.seen[-1].body)["model"] == "demo/role"
    broken = broken_stream(desk, "/v1/stream", body("die 1")).split("\n\n")[-1]
    event, data = broken.strip().split("\n")
    assert event == "event: error"
    assert json.loads(data[6:])["error"]["code"] == "engine_ended"


def test_kserves_stream_has_kserves_error(desk: httpx.Client) -> None:
    path = "/roles/architect/v2/models/architect/generate_stream"
    assert "error" not in desk.post(path, json=body("tell 2")).text
    broken = broken_stream(desk, path, body("die 1")).split("\n\n")[-1]
    assert json.loads(broken.strip()[6:]) == {"error": "the engine ended before its answer did"}


def test_an_engine_that_falls_silent_is_told_to_the_client(
    started: Started, engine: Engine
) -> None:
    quick = started(
        gateway(silence_s=1, timeout_s=2), demo("desk", DESK, {"architect": role(engine.address)})
    )
    engine.release.clear()
    with client(quick, DESK) as open_client:
        silent = broken_stream(open_client, "/v1/completions", body("hang 2"))
        assert '"code":"engine_silent"' in silent
        late = open_client.post("/v1/completions", json={"model": "architect", "prompt": "wait"})
        assert late.status_code == 504
        assert late.json()["error"]["code"] == "engine_timeout"
        long = broken_stream(open_client, "/v1/completions", body("tell 1000"))
        assert '"code":"too_long"' in long
    until(lambda: engine.generating == 0, "the engine was let go")


def test_an_engine_that_was_slow_before_it_fell_silent_is_told_as_silent(
    started: Started, engines: Callable[..., Engine]
) -> None:
    # The second event comes too soon after the first for nginx to set its timer anew.
    engine = engines(pause_s=0.2)
    quick = started(gateway(silence_s=1), demo("desk", DESK, {"architect": role(engine.address)}))
    with client(quick, DESK) as open_client:
        silent = broken_stream(open_client, "/v1/completions", body("hang 2"))
    assert '"code":"engine_silent"' in silent


def test_a_client_that_goes_takes_its_generation_with_it(
    shared: RunningGateway, desk: httpx.Client, engine: Engine
) -> None:
    engine.release.clear()
    with desk.stream("POST", "/v1/completions", json=body("hang 1")) as answer:
        lines = answer.iter_lines()  # Kept: without it httpx would close the connection here.
        next(lines)
        assert engine.generating == 1
    until(lambda: engine.generating == 0, "the stream's generation stopped", 2)
    with pytest.raises(httpx.ReadTimeout):
        desk.post("/v1/completions", json={"model": "architect", "prompt": "wait"}, timeout=0.3)
    until(lambda: engine.generating == 0, "the answer's generation stopped", 2)
    until(lambda: shared.status()["requests"]["desk/default"] == 0, "nothing is counted")


def cut_stream(port: int, seed: int, within_s: float, **more: Any) -> None:
    """One stream, ended by the client within that time: politely, or by a reset."""
    rng = random.Random(seed)  # noqa: S311
    sent = json.dumps(body(f"tell {rng.randrange(1, 40)}", **more)).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {DESK}\r\n"
    request = head.encode() + b"Content-Length: %d\r\n\r\n" % len(sent) + sent
    with socket.create_connection(("127.0.0.1", port), 10) as stream:
        if rng.random() < 0.2:
            request = request[: rng.randrange(len(request))]
        stream.sendall(request)
        stream.settimeout(rng.random() * within_s / 2 + 0.001)
        give_up = time.monotonic() + rng.random() * within_s
        try:
            while time.monotonic() < give_up and stream.recv(200):
                pass
        except TimeoutError:
            pass
        if rng.random() < 0.5:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def cut_streams(port: int, count: int, within_s: float = 0.2, **more: Any) -> None:
    """So many streams, sixteen at a time."""
    seeds = iter(range(count))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                seed = next(seeds, None)
            if seed is None:
                return
            cut_stream(port, seed, within_s, **more)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert next(seeds, None) is None, "not all streams were begun"


def test_streams_cut_at_random_points_leave_nothing_behind(
    started: Started, engines: Callable[..., Engine]
) -> None:
    engine = engines(pause_s=0.005)
    running = started(
        gateway(connections_per_key=10000),
        demo("desk", DESK, {"architect": role(engine.address)}),
    )
    cut_streams(running.port, 1000)
    until(lambda: engine.generating == 0, "all generations stopped")
    assert engine.started > 300

    def idle() -> bool:
        status = running.status()
        counted = status["demos"]["desk"]["architect"]["replicas"]
        return status["requests"] == {"desk/default": 0} and all(
            replica["requests"] == 0 for replica in counted
        )

    until(idle, "nothing is counted as under way")
    until(lambda: not connections(engine.port), "no connection to the engine is left")
    assert not connections(running.port)


def connections(port: int) -> list[str]:
    """Established connections of a loopback port, as the kernel lists them."""
    with open("/proc/net/tcp") as table:  # noqa: PTH123
        rows = [line.split() for line in table]
    wanted = f"0100007F:{port:04X}"
    return [" ".join(row[1:4]) for row in rows if row[1] == wanted and row[3] == "01"]


def test_the_official_client_sees_chat_completions_streams_and_errors(
    shared: RunningGateway,
) -> None:
    official = openai.OpenAI(base_url=f"{shared.url}/v1", api_key=DESK, max_retries=0)
    with official:
        done = official.completions.create(model="sentry", prompt="hello")
        assert (done.model, done.choices[0].text) == ("sentry", "ok")
        stream = official.completions.create(model="architect", prompt="tell 3", stream=True)
        assert [chunk.model for chunk in stream] == ["architect"] * 4
        with pytest.raises(openai.NotFoundError, match="it has: architect"):
            official.completions.create(model="nobody", prompt="x")
        with pytest.raises(openai.InternalServerError, match="being exchanged") as refused:
            official.completions.create(model="auditor", prompt="x")
        assert refused.value.response.headers["retry-after"] == "17"
        broken = official.completions.create(model="architect", prompt="die 2", stream=True)
        with pytest.raises(openai.APIError, match="the engine ended before its answer did"):
            list(broken)
        assert next(model.id for model in official.models.list()) == "architect"
        assert official.models.retrieve("sentry").id == "sentry"
    with (
        openai.OpenAI(base_url=f"{shared.url}/v1", api_key="no", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()


def test_an_engine_that_cannot_be_reached_is_a_503(started: Started) -> None:
    running = started(
        gateway(), demo("desk", DESK, {"architect": role(f"127.0.0.1:{free_port()}")})
    )
    with client(running, DESK) as open_client:
        for _ in range(3):
            answer = open_client.post("/v1/completions", json=body("x"))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
            assert answer.json()["error"]["code"] == "engine_unavailable"


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_leaves_its_connection_open_for_the_next(
    shared: RunningGateway, stream: bool
) -> None:
    connection = HTTPConnection("127.0.0.1", shared.port, timeout=10)
    sent, headers = json.dumps(body("tell 2", stream=stream)), {"Authorization": f"Bearer {DESK}"}
    used = set()
    for _ in range(3):
        connection.request("POST", "/v1/completions", sent, headers)
        used.add(connection.sock)
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.read()
    connection.close()
    assert len(used) == 1


def test_over_tls_too_each_token_comes_at_once_and_a_broken_stream_has_its_error(
    started: Started, engine: Engine, certificate: TlsFiles
) -> None:
    running = started(
        gateway(tls=certificate), demo("desk", DESK, {"architect": role(engine.address)})
    )
    trusting = ssl.create_default_context(cafile=certificate.certificate)
    engine.release.clear()
    with client(running, DESK, verify=trusting) as open_client:
        with open_client.stream("POST", "/v1/completions", json=body("hang 2")) as answer:
            lines = answer.iter_lines()
            assert '"text": "0"' in next(lines)
            engine.release.set()
            assert list(lines)[-2:] == ["data: [DONE]", ""]
        read = broken_stream(open_client, "/v1/completions", body("die 2"))
    assert json.loads(read.split("\n\n")[-1].strip().removeprefix("data: ")) == ENDED
