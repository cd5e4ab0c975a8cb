"""Any body: one value in it is exchanged, and not a byte else."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway_nginx.engine import OWN_NAME, Engine

strings = st.one_of(st.text(max_size=8), st.sampled_from(['"model"', '\\"model\\":', "}{][", "\\"]))
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
        strings,
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(strings, st.just("model")), inner, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip


@given(
    st.lists(st.tuples(strings.filter(lambda name: name != "model"), values), max_size=5),
    st.integers(0, 5),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.sampled_from(["", " ", "\n", "\t"]),
)
@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_body_arrives_as_it_was_but_for_its_models_name(
    desk: httpx.Client,
    engine: Engine,
    members: list[tuple[str, Any]],
    place: int,
    indent: int | None,
    ascii_only: bool,
    around: str,
) -> None:
    named = dict(members)
    named.pop("prompt", None)
    named.pop("stream", None)
    ordered = list(named.items())
    ordered.insert(place, ("model", "sentry"))

    def text(name: str) -> bytes:
        body = dict(ordered) | {"model": name}
        written = json.dumps(body, indent=indent, ensure_ascii=ascii_only)
        return (around + written + around).encode("utf-8", "surrogatepass")

    engine.seen.clear()
    answer = desk.post("/v1/completions", content=text("sentry"))
    assert answer.status_code == 200, answer.text
    assert engine.seen[-1].body == text(OWN_NAME)
    assert answer.json()["model"] == "sentry"


@pytest.mark.parametrize(
    ("member", "value", "says"),
    [
        ("temperature", -1, "`temperature` is 0 or more, not -1"),
        ("top_p", 1.5, "`top_p` is 0 to 1, not 1.5"),
        ("presence_penalty", -3, "`presence_penalty` is -2 to 2, not -3"),
        ("max_tokens", 0, "`max_tokens` is 1 or more, not 0"),
        ("max_tokens", "many", "`max_tokens` is a number"),
        ("temperature", [1], "`temperature` is a number"),
    ],
)
def test_what_no_engine_can_do_is_one_refusal_whatever_serves(
    desk: httpx.Client, engine: Engine, member: str, value: object, says: str
) -> None:
    engine.seen.clear()
    body = {"model": "architect", "prompt": "x", member: value}
    answer = desk.post("/v1/completions", json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["message"], error["param"]) == (says, member)
    assert error["type"] == "invalid_request_error"
    assert engine.seen == []


def test_what_is_left_to_the_engine_is_let_through(desk: httpx.Client) -> None:
    body = {"model": "architect", "prompt": "x", "temperature": None, "max_tokens": 3, "top_p": 1}
    assert desk.post("/v1/completions", json=body).status_code == 200
