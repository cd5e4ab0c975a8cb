"""Answers: deterministic, readable, and ending as asked."""

from sandbox.vllm_standin import sampling
from sandbox.vllm_standin.answers import Sequence, advance, begin
from sandbox.vllm_standin.sampling import Sampling


def _answer(model: str, prompt: str, parameters: str) -> Sequence:
    wanted = sampling.parse(parameters, print)
    assert wanted
    sequence = begin(model, prompt, wanted, 0)
    while not sequence.finish_reason:
        advance(sequence, wanted, 4000)
    return sequence


def test_the_same_question_has_the_same_answer() -> None:
    first = _answer("e2b", "What is a berth?", '{"max_tokens": 30, "seed": 7}')
    assert first.text == _answer("e2b", "What is a berth?", '{"seed": 7, "max_tokens": 30}').text


def test_another_seed_model_or_prompt_has_another_answer() -> None:
    texts = {
        _answer("e2b", "What is a berth?", '{"max_tokens": 30}').text,
        _answer("e4b", "What is a berth?", '{"max_tokens": 30}').text,
        _answer("e2b", "What is a quay?", '{"max_tokens": 30}').text,
        _answer("e2b", "What is a berth?", '{"max_tokens": 30, "seed": 1}').text,
    }
    assert len(texts) == 4


def test_an_answer_names_its_model_and_its_topic() -> None:
    text = _answer("gemma-4-e2b-it", "Tell me about harbours", "{}").text
    assert text.startswith("gemma-4-e2b-it here, on Tell about harbours:")


def test_sixteen_tokens_are_the_default() -> None:
    sequence = _answer("e2b", "hello", "{}")
    assert (sequence.tokens, sequence.finish_reason) == (16, "length")


def test_a_long_limit_is_not_used_up() -> None:
    sequence = _answer("e2b", "hello", '{"max_tokens": 4000}')
    assert sequence.tokens <= 110
    assert sequence.finish_reason == "stop"


def test_eos_can_be_ignored() -> None:
    assert _answer("e2b", "hello", '{"max_tokens": 500, "ignore_eos": true}').tokens == 500


def test_a_stop_string_ends_the_text_before_it() -> None:
    sequence = _answer("e2b", "hello", '{"max_tokens": 50, "stop": ["here"]}')
    assert sequence.text == "e2b "
    assert sequence.finish_reason == "stop"


def test_an_unknown_or_impossible_parameter_is_only_logged() -> None:
    said: list[str] = []
    assert sampling.parse('{"nonsense": 1}', said.append) is None
    assert sampling.parse('{"temperature": -1}', said.append) is None
    assert len(said) == 2
    assert isinstance(sampling.parse("{}", said.append), Sampling)
