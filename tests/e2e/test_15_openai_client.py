"""The official `openai` client talks to a role alike, whatever engine serves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam

from tests.e2e.built_engines import lay_out
from tests.e2e.clients import Reached, logged, status
from tests.e2e.host import TestHost, until
from tests.e2e.workspace import Workspace, reachable

STACK = "clients"
AUDITOR, SENTRY = "gemma-4-e4b-it", "gemma-4-e2b-it"
ENGINES = [
    "triton-vllm",
    "triton-llmapi",
    "triton-batcher",
    "vllm",
    "trtllm-serve",
    "triton-openai",
    "triton-openai-batcher",
]
ROLES = ("auditor", "reviewer")
"""Both are served by one load."""
COUNTS_NOTHING = {"triton-llmapi"}
"""Its model in Triton has no output for token counts, and a made-up `usage` would be no help."""
NEVER_SAYS_LENGTH = {"triton-openai", "triton-openai-batcher"}
"""Triton's frontend says `stop` of every answer, also of one that its length cut."""
SAYS_500 = NEVER_SAYS_LENGTH
"""An engine's refusal is a 500 there, with the reason in its text."""


def said(text: str) -> list[ChatCompletionUserMessageParam]:
    return [{"role": "user", "content": text}]


@dataclass(frozen=True)
class Served:
    """Two roles under an engine."""

    engine: str
    reached: Reached
    client: openai.OpenAI


@pytest.fixture(scope="module", params=ENGINES)
def served(
    request: pytest.FixtureRequest, workspace: Workspace, host: TestHost
) -> Iterator[Served]:
    roles = dict.fromkeys(ROLES, (AUDITOR, "triton@2")) | {"sentry": (SENTRY, "triton@3")}
    made = reachable(host, "triton@2", "triton@3", **roles)
    for role in ROLES:
        made["demo"]["roles"][role]["engine"] = request.param
    lay_out(workspace, host, AUDITOR)
    workspace.write_stack(STACK, made)
    workspace.up(STACK)
    reached = Reached.of(workspace, STACK)
    with reached.openai() as client:
        yield Served(request.param, reached, client)
    if request.param == ENGINES[-1]:
        workspace.down(STACK)


def test_the_roles_of_the_key_are_listed(served: Served) -> None:
    models = {model.id: model.model_dump() for model in served.client.models.list()}
    assert set(models) == {*ROLES, "sentry"}
    assert models["auditor"]["berth"]["serving"] is True
    assert models["auditor"]["berth"]["engine"] == served.engine
    assert served.client.models.retrieve("auditor").id == "auditor"


@pytest.mark.parametrize("role", ROLES)
def test_a_chat_is_answered_under_the_name_that_was_asked(
    served: Served, host: TestHost, role: str
) -> None:
    raw = served.client.chat.completions.with_raw_response.create(
        model=role, messages=said("Who are you?"), max_tokens=8, temperature=0
    )
    answer = raw.parse()
    assert answer.model == role
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == _ended(served)
    if served.engine in COUNTS_NOTHING:
        assert answer.usage is None
    else:
        assert answer.usage is not None
        assert answer.usage.completion_tokens == 8
    request_id = raw.headers["x-request-id"]
    until(lambda: bool(logged(host, request_id)), 10, "its line in the log")
    (line,) = logged(host, request_id)
    assert (line["role"], line["model"], line["engine"]) == (role, role, served.engine)
    assert (line["status"], line["outcome"], line["demo"]) == (200, "ok", "reference")
    assert line["first_byte_s"] is not None


def _ended(served: Served) -> str:
    return "stop" if served.engine in NEVER_SAYS_LENGTH else "length"


def test_a_prompt_is_completed(served: Served) -> None:
    answer = served.client.completions.create(
        model="auditor", prompt="The sea", max_tokens=6, temperature=0
    )
    assert answer.model == "auditor"
    assert answer.choices[0].text


def test_a_model_may_be_called_by_its_own_name(served: Served) -> None:
    answer = served.client.completions.create(model=AUDITOR, prompt="The sea", max_tokens=2)
    assert answer.model in ROLES


@pytest.mark.parametrize("role", ROLES)
def test_a_chat_streams_under_the_name_that_was_asked(served: Served, role: str) -> None:
    chunks = list(
        served.client.chat.completions.create(
            model=role, messages=said("Who are you?"), max_tokens=8, temperature=0, stream=True
        )
    )
    assert {chunk.model for chunk in chunks} == {role}
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert len([text for text in texts if text]) > 1
    whole = served.client.chat.completions.create(
        model=role, messages=said("Who are you?"), max_tokens=8, temperature=0
    )
    assert "".join(texts).strip() == (whole.choices[0].message.content or "").strip()
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == _ended(served)


def test_a_stop_sequence_ends_an_answer_and_is_no_part_of_it(served: Served) -> None:
    def ask(stop: list[str] | None) -> str:
        answer = served.client.completions.create(
            model="auditor", prompt="The sea", max_tokens=40, temperature=0, stop=stop
        )
        return answer.choices[0].text

    whole = ask(None)
    word = whole.split()[6]
    assert word not in ask([word])
    assert whole.startswith(ask([word]).rstrip())


def test_a_stream_that_its_client_drops_ends_at_the_engine_too(
    served: Served, host: TestHost
) -> None:
    stream = served.client.chat.completions.create(
        model="auditor", messages=said("Tell me everything."), max_tokens=2000, stream=True
    )
    next(iter(stream))
    stream.close()
    until(lambda: _under_way(host) == 0, 10, "nothing is under way")
    again = served.client.completions.create(model="auditor", prompt="The sea", max_tokens=2)
    assert again.choices[0].text


def _under_way(host: TestHost) -> int:
    number: int = status(host)["demos"]["reference"]["auditor"]["requests"]
    return number


def test_an_unknown_role_is_a_404_that_names_the_known_ones(served: Served) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        served.client.chat.completions.create(model="nobody", messages=said("x"))
    assert "auditor, reviewer, sentry" in refused.value.message


def test_what_no_engine_can_do_is_a_400_in_openais_shape(served: Served) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        served.client.completions.create(model="auditor", prompt="x", temperature=-1)
    assert refused.value.body["message"]  # type: ignore[index]
    assert refused.value.type == "invalid_request_error"


def test_a_context_that_is_too_long_is_told_as_such(served: Served) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        served.client.completions.create(model="auditor", prompt="word " * 60_000, max_tokens=4)
    assert refused.value.code == "context_length_exceeded"
    assert refused.value.status_code == (500 if served.engine in SAYS_500 else 400)


def test_another_key_opens_nothing(served: Served) -> None:
    with (
        served.reached.openai(api_key="k" * 43) as other,
        pytest.raises(openai.AuthenticationError),
    ):
        other.models.list()


def test_the_orchestrators_framing_is_the_same_for_every_engine(served: Served) -> None:
    body = {"model": "auditor", "prompt": "The sea", "max_tokens": 4}
    with served.reached.http() as http:
        text = http.post("/v1/stream", json=body).text
    events = [line[7:] for line in text.splitlines() if line.startswith("event: ")]
    assert events[0] == "started"
    assert events.count("token") >= 1
    assert events[-2:] == ["metrics", "end"]
