"""One engine for each model, whatever its configuration says otherwise."""

from __future__ import annotations

import pytest

from models.rules import one_engine
from tests.models.rules.plans import CONFIG, GOOD, refused, with_model


def test_the_configuration_that_berth_renders_passes() -> None:
    assert not one_engine.findings(GOOD)


@pytest.mark.parametrize(
    "config",
    [
        "backend: 'vllm' instance_group { kind: KIND_MODEL }",
        'backend: "vl" "lm"; instance_group: [ { count: 1; kind: 3 } ], name: "x"',
        'instance_group < kind: KIND_MODEL > # { kind: KIND_GPU }\nbackend: "vllm"',
        'parameters { key: "a" value: { string_value: "instance_group [ { kind: KIND_GPU } ]" } }'
        + CONFIG,
        'backend: "python" instance_group [ { count: 4, kind: KIND_CPU } ]',
    ],
)
def test_other_ways_to_write_one_engine_pass(config: str) -> None:
    assert not one_engine.findings(with_model(config_pbtxt=config))


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (CONFIG.replace("MODEL", "GPU"), "KIND_GPU: one engine for each of 2 GPU(s)"),
        (CONFIG.replace("count: 1", "count: 2"), "has count 2"),
        ('backend: "vllm"', "no instance_group: Triton would make an engine for each of 2 GPUs"),
        (CONFIG + "instance_group { kind: KIND_MODEL }", "has 2 instance groups"),
        (CONFIG.replace("kind:", "gpus: [ 0, 1 ], kind:"), "`gpus: [0, 1]` would be silently"),
        (CONFIG.replace("KIND_MODEL", "KIND_AUTO"), "instance group is KIND_AUTO"),
        (CONFIG.replace(", kind: KIND_MODEL", ""), "instance group is of no kind"),
        (CONFIG.replace("count: 1", "passive: true"), "a passive instance group answers nothing"),
        (CONFIG.replace("kind:", "kind: KIND_GPU kind:"), "`kind` stands there more than once"),
        (CONFIG + 'backend: "python"', "`backend` stands there more than once"),
        ("instance_group: [ 7 ]", "its instance_group is `7`, which is no group"),
        ("instance_group [ {", "line 1: it ends too early"),
        ('backend: "vllm', "line 1: a string is not closed"),
        ("backend vllm", "line 1: `:` or `{` should stand where `vllm` does"),
        ("\n\n}", "line 3: `}` is no field's name"),
        ("a {" * 100, "nested deeper than 64 levels"),
    ],
)
def test_what_makes_another_number_of_engines_is_refused(config: str, says: str) -> None:
    text = refused(one_engine, with_model("big", config_pbtxt=config))
    assert says in text
    assert text.startswith("catalog/big.yaml: config_pbtxt: big on triton@wide: ")
    assert "instance_group [ { count: 1, kind: KIND_MODEL } ]" in text


def test_the_llm_api_is_one_engine_under_kind_cpu_too() -> None:
    config = 'backend: "python"\ninstance_group [ { count: 1, kind: KIND_CPU } ]\n'
    own = {"engine": "triton-llmapi", "config_pbtxt": config}
    assert not one_engine.findings(with_model(**own))
    two = own | {"config_pbtxt": config.replace("count: 1", "count: 2")}
    assert "has count 2" in refused(one_engine, with_model(**two))
    assert "KIND_GPU" in refused(
        one_engine, with_model(**own | {"config_pbtxt": config.replace("CPU", "GPU")})
    )
