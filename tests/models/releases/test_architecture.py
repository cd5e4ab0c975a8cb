"""Which model runs on which image: certain, impossible, or not known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.releases.architecture import judge, model_findings
from models.releases.held import Held, held_by
from models.releases.tables import Architecture, Releases, VllmRequirement

AT = "berth:instances.triton@0.image"
CAN: list[bool] = []
CANNOT = [True]
UNKNOWN = [False]


def image(tag: str, flavour: str = "vllm") -> str:
    return f"nvcr.io/nvidia/tritonserver:{tag}-{flavour}-python-py3@sha256:{'a' * 64}"


def ask(reference: str, architecture: str, releases: Releases) -> list[bool]:
    found = model_findings(reference, architecture, releases, at=AT, model="my-model")
    return [finding.certain for finding in found]


@pytest.mark.parametrize(
    ("tag", "architecture", "expected"),
    [
        ("26.03", "gemma4", CANNOT),  # vLLM 0.17.1 has not its code
        ("26.04", "gemma4", UNKNOWN),  # 0.19.0 has it, and asks for a transformers without it
        ("26.05", "gemma4", UNKNOWN),
        ("26.06", "gemma4", CAN),
        ("26.08", "gemma4", CAN),
        ("25.01", "llama", CAN),
        ("26.08", "llama", CAN),
        ("25.04", "qwen3", CANNOT),
        ("25.05", "qwen3_moe", CAN),
        ("25.03", "gemma3", CANNOT),
        ("25.04", "gemma3", UNKNOWN),  # 0.8.1 takes a transformers without it, too
        ("25.05", "gemma3_text", CAN),
        ("25.01", "deepseek_v3", CANNOT),
        ("25.02", "deepseek_v3", CAN),
        ("25.08", "gpt_oss", CANNOT),
        ("25.09", "gpt_oss", CAN),
        ("26.02", "qwen3_5_moe", CANNOT),
        ("26.03", "qwen3_5", CAN),  # vLLM brings the configuration: transformers < 5 is no matter
        ("26.08", "gemma4_unified", UNKNOWN),
        ("26.03", "an_architecture_of_next_year", UNKNOWN),
    ],
)
def test_a_release_runs_what_its_vllm_and_transformers_know(
    tag: str, architecture: str, expected: list[bool], releases: Releases
) -> None:
    assert ask(image(tag), architecture, releases) == expected


def test_a_refusal_says_what_is_held_what_is_needed_and_the_first_that_can(
    releases: Releases,
) -> None:
    (finding,) = model_findings(image("26.03"), "gemma4", releases, at=AT, model="gemma-4-e2b-it")
    assert finding.certain
    assert str(finding.refusal).splitlines() == [
        f"{AT}: Triton 26.03 holds vLLM 0.17.1 and transformers < 5; gemma-4-e2b-it is gemma4, "
        "which needs transformers ≥ 5.5.0 and vLLM ≥ 0.19.1",
        "  The engine would not know the model and end its load. Nothing was touched.",
        "  Fix: first that can: Triton 26.06 (vLLM 0.22.1); until then: engine vllm with 0.19.1 or "
        "newer.",
    ]


@pytest.mark.parametrize("architecture", ["gemma4", "qwen3", "gpt_oss", "glm4_moe", "nemotron_h"])
def test_the_release_that_a_refusal_offers_runs_the_model(
    architecture: str, releases: Releases
) -> None:
    (finding,) = model_findings(image("25.01"), architecture, releases, at=AT, model="m")
    assert finding.certain
    offered = finding.refusal.fix.split("Triton ")[1].split(" ")[0]
    assert ask(image(offered), architecture, releases) == CAN


def test_what_is_not_known_names_the_command_that_settles_it(releases: Releases) -> None:
    (finding,) = model_findings(image("26.04"), "gemma4", releases, at=AT, model="m")
    assert f"docker run --rm --entrypoint python3 {image('26.04')}" in finding.refusal.fix
    assert "Triton 26.06" in finding.refusal.fix


@pytest.mark.parametrize(("transformers", "expected"), [("5.5.4", CAN), ("4.57.6", CANNOT)])
def test_what_that_command_says_settles_it(
    transformers: str, expected: list[bool], releases: Releases
) -> None:
    rows = [
        row.model_copy(update={"vllm_transformers": transformers}) if row.tag == "26.04" else row
        for row in releases.triton
    ]
    told = replace(releases, triton=tuple(rows))
    assert ask(image("26.04"), "gemma4", told) == expected


def test_a_transformers_that_lacks_the_model_is_refused_whatever_vllm_can(
    releases: Releases,
) -> None:
    needs = releases.by_model_type["gemma4"]
    held = Held("mine", vllm="0.22.1", transformers="5.4.0")
    assert judge(held, needs, releases) == "cannot"
    assert judge(replace(held, transformers="5.5.0"), needs, releases) == "can"


@pytest.mark.parametrize("vllm", [None, "0.18.2"])
def test_a_transformers_that_knows_the_model_says_nothing_of_a_vllm_that_may_not(
    vllm: str | None, releases: Releases
) -> None:
    held = Held("mine", vllm=vllm, transformers="5.5.4")
    assert judge(held, releases.by_model_type["gemma4"], releases) == "unknown"


def test_a_vllm_that_keeps_the_needed_transformers_out_is_refused(releases: Releases) -> None:
    needs = releases.by_model_type["gemma4"].model_copy(update={"vllm_safe": "0.19.0"})
    assert judge(Held("mine", vllm="0.19.0"), needs, releases) == "cannot"


def test_nothing_is_known_of_a_model_on_tensorrt_llm(releases: Releases) -> None:
    (finding,) = model_findings(image("26.03", "trtllm"), "llama", releases, at=AT, model="m")
    assert not finding.certain
    assert "TensorRT-LLM 1.2.0" in finding.refusal.cause


def test_an_image_by_digest_alone_is_a_warning_that_says_how_to_name_it(
    releases: Releases,
) -> None:
    reference = f"nvcr.io/nvidia/tritonserver@sha256:{'0' * 64}"
    (finding,) = model_findings(reference, "gemma4", releases, at=AT, model="m")
    assert not finding.certain
    assert "repository:tag@sha256:" in finding.refusal.fix
    assert "releases/images.csv" in finding.refusal.fix


def test_a_release_that_is_not_in_the_table_asks_for_its_row(releases: Releases) -> None:
    (finding,) = model_findings(image("99.01"), "gemma4", releases, at=AT, model="m")
    assert not finding.certain
    assert "releases/triton.csv" in finding.refusal.fix


@given(st.text(), st.text())
def test_any_texts_are_answered_with_one_to_three_lines(
    releases: Releases, reference: str, architecture: str
) -> None:
    for finding in model_findings(reference, architecture, releases, at=AT, model="m"):
        assert not finding.certain
        assert finding.refusal.consequence
        assert finding.refusal.fix


@given(st.data())
def test_an_architecture_that_one_release_runs_runs_on_every_later_one(
    releases: Releases, data: st.DataObject
) -> None:
    needs = data.draw(st.sampled_from(releases.architectures))
    order = {"cannot": 0, "unknown": 1, "can": 2}
    verdicts = []
    for row in releases.triton:
        held = held_by(image(row.tag), releases)
        assert held is not None
        verdicts.append(order[judge(held, needs, releases)])
    assert verdicts == sorted(verdicts)


versions = st.sampled_from(["0.1", "0.2", "0.3", "0.4", "0.5"])


@given(versions, versions, versions)
def test_a_newer_transformers_in_the_image_never_makes_it_worse(
    vllm: str, older: str, newer: str
) -> None:
    older, newer = sorted((older, newer))
    needs = Architecture(
        model_type="x",
        transformers_lacks="0.2",
        transformers_has="0.4",
        vllm_lacks="0.2",
        vllm_has="0.3",
        vllm_safe="0.4",
        note="",
        source="-",
    )
    asks = VllmRequirement(
        first="0.1",
        last="0.5",
        transformers="<0.2",
        torch=None,
        depends_on_ray="no",
        source="-",
    )
    tables = Releases((), (asks,), (), (needs,), ())
    order = {"cannot": 0, "unknown": 1, "can": 2}
    worse = judge(Held("mine", vllm=vllm, transformers=older), needs, tables)
    better = judge(Held("mine", vllm=vllm, transformers=newer), needs, tables)
    assert order[worse] <= order[better]
