"""A build is another one when, and only when, what it is made from is another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from config.builds import load_builds
from models.build import Build, PlannedBuild
from models.refusal import Refusals
from models.validation import parse


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "serving/newer"
    (folder / "wheels").mkdir(parents=True)
    (folder / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nCOPY wheels /w\n")
    (folder / "wheels/a.whl").write_bytes(b"\x00a")
    return folder


def planned(project: Path, **changed: Any) -> PlannedBuild:
    given = {"context": "serving/newer", "args": {"BASE": "a:1"}} | changed
    return load_builds(project, {"newer": parse(Build, given, "berth:builds.newer")})["newer"]


def test_a_build_is_named_by_its_inputs(tmp_path: Path, context: Path) -> None:
    build = planned(tmp_path)
    assert build.reference.startswith("berth-build/newer:")
    assert build.bases == ("a:1",)
    (context / "wheels/a.whl").touch()
    assert planned(tmp_path) == build


def test_whatever_changes_among_its_inputs_makes_it_another(tmp_path: Path, context: Path) -> None:
    seen = {planned(tmp_path).reference}

    def another(**changed: Any) -> None:
        reference = planned(tmp_path, **changed).reference
        assert reference not in seen
        seen.add(reference)

    another(args={"BASE": "a:2"})
    (context / "wheels/a.whl").write_bytes(b"\x00b")
    another()
    (context / "wheels/a.whl").rename(context / "wheels/b.whl")
    another()
    (context / "wheels/b.whl").chmod(0o755)
    another()
    (context / "link").symlink_to("wheels/b.whl")
    another()
    (context / "Other").write_text("FROM a:1\n")
    another()
    another(dockerfile="Other")


@pytest.mark.usefixtures("context")
def test_what_it_is_declared_to_hold_is_no_input(tmp_path: Path) -> None:
    declared = planned(tmp_path, versions={"vllm": "0.32.0"})
    assert declared.versions == {"vllm": "0.32.0"}
    assert declared.reference == planned(tmp_path).reference


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"context": "serving/none"}, r"builds\.newer\.context: no directory `serving/none`"),
        ({"dockerfile": "Nowhere"}, r"builds\.newer\.dockerfile: no file `Nowhere`"),
        ({"args": {}}, r"the argument `BASE` has no value\n.*\n.*`berth:builds\.newer\.args`"),
        ({"context": "../outside"}, r"builds\.newer: context: .*should match pattern"),
        ({"context": "/etc"}, "should match pattern"),
        ({"versions": {"vllm": "new"}}, "`new` is not a version"),
        ({"tag": "x"}, "unknown key `tag`"),
    ],
)
def test_a_build_that_cannot_be_made_is_refused_where_it_is_declared(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(Refusals, match=said):
        planned(tmp_path, **changed)


def test_the_shipped_recipe_can_be_planned_and_names_its_base_by_its_argument() -> None:
    base = "vllm/vllm-openai:v0.32.0@sha256:" + "0a" * 32
    root = Path(__file__).parents[2]
    build = parse(
        Build,
        {"context": "serving/vllm-newer-transformers",
         "args": {"BASE": base, "TRANSFORMERS": "5.17.0"}},
        "berth:builds.x",
    )  # fmt: skip
    assert load_builds(root, {"x": build})["x"].bases == (base,)
