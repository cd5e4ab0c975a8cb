"""Chat templates: from where they come, what they may use, and what they may not do."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from engines.failure import EngineError
from gateway.chat_template import PROGRAM, ChatTemplate
from tests.engines.serving import until
from tests.gateway.running import TEMPLATE, weights

HI = [{"role": "user", "content": "hi"}]


def rendered(place: Path, messages: list[dict[str, str]] | None = None, **more: Any) -> str:
    async def do() -> str:
        template = ChatTemplate(str(place), render_s=more.pop("render_s", 10))
        try:
            return await template.render(messages or HI, more)
        finally:
            await template.retire()

    return asyncio.run(do())


def failure(place: Path, **more: Any) -> EngineError:
    with pytest.raises(EngineError) as caught:
        rendered(place, **more)
    return caught.value


def _named(place: Path) -> None:
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": TEMPLATE}]
    weights(place, named)


def _own_file(place: Path) -> None:
    weights(place, "overruled")
    (place / "chat_template.jinja").write_text(TEMPLATE)


def _token_with_flags(place: Path) -> None:
    weights(place, TEMPLATE, bos_token={"content": "<s>", "lstrip": False})


def _processors_file(place: Path) -> None:
    weights(place, None)
    (place / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}))


def _token_in_the_old_place(place: Path) -> None:
    weights(place, TEMPLATE, bos_token=None)
    (place / "special_tokens_map.json").write_text(json.dumps({"bos_token": "<s>"}))
    about = json.loads((place / "tokenizer_config.json").read_text())
    del about["bos_token"]
    (place / "tokenizer_config.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    "written",
    [weights, _named, _own_file, _token_with_flags, _processors_file, _token_in_the_old_place],
)
def test_a_template_is_found_in_each_place_where_models_have_it(
    written: Callable[[Path], None], tmp_path: Path
) -> None:
    written(tmp_path)
    assert rendered(tmp_path) == "<s><user>hi<assistant>"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ {'a': '<é>'} | tojson }}", '{"a": "<é>"}'),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        ("{{ strftime_now('%Y') }}", str(datetime.now().astimezone().year)),
        ("a\n{% if true %}\n  b\n{% endif %}\nc", "a\n  b\nc"),  # trim and lstrip blocks
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "hi"),
        ("{{ tools is none }} {{ pad_token is defined }}", "True False"),
        ("{{ enable_thinking }}", "False"),
    ],
)  # fmt: skip
def test_templates_have_what_transformers_offers_them(
    template: str, text: str, tmp_path: Path
) -> None:
    assert rendered(weights(tmp_path, template), enable_thinking=False) == text


@pytest.mark.parametrize(
    "tokenizer",
    [
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}]},
        {
            "type": "Sequence",
            "processors": [
                {"type": "ByteLevel"},
                {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}]},
            ],
        },
    ],
)
def test_the_first_token_is_not_there_twice_where_the_tokenizer_adds_it(
    tokenizer: dict[str, Any], tmp_path: Path
) -> None:
    weights(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"post_processor": tokenizer}))
    assert rendered(tmp_path) == "<user>hi<assistant>"
    weights(tmp_path, add_bos_token=False)
    assert rendered(tmp_path) == "<s><user>hi<assistant>"


def test_the_tokenizers_own_word_on_its_first_token_is_believed(tmp_path: Path) -> None:
    assert rendered(weights(tmp_path, add_bos_token=True)) == "<user>hi<assistant>"


def test_a_model_without_a_template_says_so(tmp_path: Path) -> None:
    error = failure(weights(tmp_path, None))
    assert (error.status, error.code) == (400, "no_chat_template")
    assert "/v1/completions works" in error.message


def test_a_template_refuses_in_its_own_words(tmp_path: Path) -> None:
    error = failure(weights(tmp_path, "{{ raise_exception('roles must alternate') }}"))
    assert (error.status, error.param) == (400, "messages")
    assert error.message == "the model's chat template refuses: roles must alternate"


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ raise_exception.__globals__.items() }}",
        "{{ messages.append(1) }}",
        "{% include '/etc/passwd' %}",
        "{{ undefined_thing.x }}",
        "{% no such tag %}",
    ],
)
def test_a_template_reaches_nothing_outside_and_what_it_breaks_is_its_own(
    template: str, tmp_path: Path
) -> None:
    error = failure(weights(tmp_path, template))
    assert (error.status, error.code) == (500, "chat_template_failed")
    assert "root:" not in error.message


@pytest.mark.parametrize(
    ("template", "words"),
    [
        # Nested, because one range is bounded by Jinja itself.
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "took longer than 0.5 s",
        ),
        ("{{ 'a' * 10 ** 10 }}", "MemoryError"),
        ("{% for a in range(99999) %}{{ 'a' * 999 }}{% endfor %}", "more than 4194304 characters"),
    ],
)
def test_a_template_without_end_is_ended(template: str, words: str, tmp_path: Path) -> None:
    error = failure(weights(tmp_path, template), render_s=0.5)
    assert error.status == 500
    assert words in error.message


def test_after_a_failure_the_next_chat_is_answered(tmp_path: Path) -> None:
    forever = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    weights(tmp_path, "{% if messages|length > 1 %}" + forever + "{% endif %}fine")

    async def do() -> None:
        template = ChatTemplate(str(tmp_path), render_s=0.5)
        with pytest.raises(EngineError):
            await template.render([*HI, *HI])
        assert await template.render(HI) == "fine"
        await template.retire()

    asyncio.run(do())


def test_a_chat_that_is_given_up_does_not_get_into_the_next_ones_prompt(tmp_path: Path) -> None:
    weights(tmp_path, "{% for a in range(99999) %}{% endfor %}{{ messages[0].content }}")

    async def do() -> None:
        template = ChatTemplate(str(tmp_path), render_s=10)
        await template.render(HI)
        first = asyncio.create_task(template.render([{"role": "user", "content": "first"}]))
        await asyncio.sleep(0)
        first.cancel()
        assert await template.render([{"role": "user", "content": "second"}]) == "second"
        await template.retire()

    asyncio.run(do())


def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    weights(tmp_path)

    async def do() -> None:
        template = ChatTemplate(str(tmp_path))
        await template.render(HI)
        process = template._process
        assert process
        process.kill()
        await process.wait()
        assert await template.render(HI)
        again = template._process
        assert again
        await template.retire()
        await until(lambda: not Path(f"/proc/{again.pid}").exists(), 1)

    asyncio.run(do())


def test_a_rendering_whose_service_was_killed_ends_by_itself(tmp_path: Path) -> None:
    forever = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    program = PROGRAM.read_text().replace("CPU_S = 30", "CPU_S = 0")
    assert program != PROGRAM.read_text()
    copy = tmp_path / "template_program.py"
    copy.write_text(program)
    command = [sys.executable, "-I", str(copy), str(weights(tmp_path / "w", forever))]
    done = subprocess.run(command, input=b'{"messages": []}\n', capture_output=True, timeout=20)
    assert done.returncode == -signal.SIGXCPU
