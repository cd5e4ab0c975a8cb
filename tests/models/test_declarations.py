"""What a user may not write, and what they are told."""

from __future__ import annotations

from typing import Any

import pytest

from models.refusal import Refusal
from models.stack import StackConfig
from models.validation import parse
from ops.reference import PARTS
from tests.declarations import SECTIONS, changed


def refusal(sections: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as refused:
        parse(StackConfig, sections, "berth:")
    return str(refused.value)


def test_the_example_is_accepted() -> None:
    assert parse(StackConfig, SECTIONS, "berth:").demo is not None


@pytest.mark.parametrize(
    ("path", "value", "at", "says"),
    [
        ("hostz", {}, "berth:hostz", "did you mean `hosts`?"),
        ("hosts/alpha/ssh/adress", "x", "berth:hosts.alpha.ssh.adress", "mean `address`?"),
        ("hosts/alpha/gpus/0/memory", 1, "berth:hosts.alpha.gpus[0].memory", "`memory_mib`"),
        ("hosts/alpha/ssh/port", "ssh", "berth:hosts.alpha.ssh.port", "'ssh' (text)"),
        ("hosts/alpha/ssh/port", 70000, "berth:hosts.alpha.ssh.port", "65535"),
        ("hosts/alpha/gpus/0/uuid", "GPU-1", "berth:hosts.alpha.gpus[0].uuid", "nvidia-smi -L"),
        ("hosts/alpha/gpus", "all", "berth:hosts.alpha.gpus", "'all' (text)"),
        ("hosts/alpha/ssh/host_key", None, "berth:hosts.alpha.ssh", "ssh-keyscan"),
        ("instances/vllm@0", {}, "berth:instances.vllm@0", "triton@"),
        ("instances/triton@0/image", None, "berth:instances.triton@0.image", "required"),
        ("demo/roles/Sentry", {}, "berth:demo.roles.Sentry", "pattern"),
        ("demo/roles/sentry/model", 3, "berth:demo.roles.sentry.model", "3 (a number)"),
    ],
)
def test_a_wrong_value_is_named_with_its_path_and_what_is_wanted(
    path: str, value: Any, at: str, says: str
) -> None:
    text = refusal(changed(path, value))
    assert at in text
    assert says in text
    assert "Nothing was touched." in text
    assert "pydantic" not in text


def test_everything_wrong_is_said_at_once() -> None:
    sections = changed("hosts/alpha/ssh/port", 0)
    sections["hosts"]["beta"]["colour"] = "red"
    text = refusal(sections)
    assert "berth:hosts.alpha.ssh.port" in text
    assert "berth:hosts.beta.colour" in text


def test_a_host_named_like_a_field_does_not_confuse_the_path() -> None:
    sections = changed("hosts/ssh", SECTIONS["hosts"]["beta"] | {"gpuz": []})
    assert "did you mean `gpus`?" in refusal(sections)


def test_a_stack_takes_its_hosts_from_itself_or_from_another_not_both() -> None:
    assert "not both" in refusal(changed("host_stack", "dev"))


def test_a_stack_without_any_host_is_refused() -> None:
    assert "nothing says where anything runs" in refusal({"demo": SECTIONS["demo"]})


def test_every_field_of_every_declaration_says_what_it_is() -> None:
    for _, model in PARTS:
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
