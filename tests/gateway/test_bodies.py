"""Bodies: what is let through, and how a wrong one is told."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.failure import EngineError
from gateway.bodies import ChatBody, CompletionBody, max_tokens_of, parsed

USER = {"role": "user", "content": "hi"}
CHAT: dict[str, Any] = {"model": "shop/architect", "messages": [USER]}


def chat(**more: Any) -> ChatBody:
    return parsed(ChatBody, json.dumps(CHAT | more).encode())


@pytest.mark.parametrize(
    ("more", "param", "words"),
    [
        ({"temperature": 3}, "temperature", "less than or equal to 2"),
        ({"temperature": "hot"}, "temperature", "valid number"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": None}, "messages", "required"),
        ({"messages": [USER | {"role": "root"}]}, "messages[0].role", "'user'"),
        ({"messages": [USER, {"role": "user", "content": [{"type": "image_url"}]}]},
         "messages[1].content[0].type", "'text'"),
        ({"messages": [USER | {"tool_calls": [1]}]}, "messages[0].tool_calls", "not known here"),
        ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
        ({"n": 99}, "n", "less than or equal to 16"),
        ({"stop": [""]}, "stop[0]", "at least 1 character"),
        ({"stream": "yes"}, "stream", "valid boolean"),
        ({"stream_options": {"usage": True}}, "stream_options.usage", "not known here"),
        ({"tools": [{"type": "function"}]}, "tools", "not supported by this role's engine"),
        ({"response_format": {"type": "json_object"}}, "response_format", "not supported"),
        ({"logprobs": True}, "logprobs", "not supported"),
        ({"guided_json": {}}, "guided_json", "not known here"),
        ({"model": ""}, "model", "at least 1 character"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_place(
    more: dict[str, Any], param: str, words: str
) -> None:
    with pytest.raises(EngineError) as caught:
        chat(**more)
    assert (caught.value.status, caught.value.param) == (400, param)
    assert words in caught.value.message


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(content: bytes) -> None:
    with pytest.raises(EngineError, match="JSON"):
        parsed(ChatBody, content)


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["model", "messages", "role", "content", "type", "text", "stop", "n",
                         "tools", "stream_options", "prompt", "x"]), inner, max_size=5),
    max_leaves=20,
))  # fmt: skip
def test_no_body_is_more_than_refused(body: Any) -> None:
    content = json.dumps(body).encode()
    for parse in (lambda: parsed(ChatBody, content), lambda: parsed(CompletionBody, content)):
        with contextlib.suppress(EngineError):
            parse()


def test_fields_that_ask_for_nothing_pass() -> None:
    body = chat(
        tools=[], tool_choice="auto", response_format={"type": "text"}, logprobs=False,
        user="somebody", temperature=None, messages=[USER | {"name": None, "refusal": None}],
    )  # fmt: skip
    assert body.temperature is None


def test_text_parts_are_put_together_and_a_developer_speaks_for_the_system() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    body = chat(messages=[{"role": "developer", "content": parts}, USER])
    assert [message.plain() for message in body.messages] == [
        {"role": "system", "content": "a\nb"},
        {"role": "user", "content": "hi"},
    ]


def test_a_stop_and_a_prompt_may_be_one_text() -> None:
    body = parsed(CompletionBody, b'{"model": "m", "prompt": "p", "stop": "x"}')
    assert (body.prompt, body.sampling(1).stop) == (["p"], ("x",))


def test_token_numbers_are_no_prompt() -> None:
    with pytest.raises(EngineError, match="valid string"):
        parsed(CompletionBody, b'{"model": "m", "prompt": [1, 2]}')


@pytest.mark.parametrize(
    ("more", "tokens"),
    [
        ({}, 100),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 8}, 8),
        ({"max_tokens": 7, "max_completion_tokens": 8}, 8),
    ],
)
def test_both_names_of_the_bound_on_tokens_are_known(more: dict[str, int], tokens: int) -> None:
    assert max_tokens_of(chat(**more), 100, 1000) == tokens


def test_more_tokens_than_the_role_gives_are_refused() -> None:
    with pytest.raises(EngineError, match="max_completion_tokens is 8, and this role gives 7") as e:
        max_tokens_of(chat(max_completion_tokens=8), 1, 7)
    assert e.value.param == "max_completion_tokens"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"messages": [0] * 300_000}, "messages[0]"),
        ({"messages": [USER] * 10_001}, "messages"),
        ({"messages": [USER | {"content": [0] * 300_000}]}, "messages[0].content[0]"),
        ({"messages": [USER | {f"a{n}": 0 for n in range(100_000)}]}, "messages[0]"),
        ({f"a{n}": 0 for n in range(100_000)}, ""),
        ({"stop": [0] * 300_000}, "stop[0]"),
    ],
)
def test_a_body_of_many_mistakes_costs_no_more_than_one_of_one(
    more: dict[str, Any], param: str
) -> None:
    content = json.dumps(CHAT | more).encode()
    tracemalloc.start()
    try:
        with pytest.raises(EngineError) as caught:
            parsed(ChatBody, content)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (caught.value.status, caught.value.param or "") == (400, param)
    assert most < 60 * 2**20
