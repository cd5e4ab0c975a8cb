"""The documents say what is true: links lead somewhere, commands exist, examples are valid."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from config.builds import load_builds
from models.build import Build
from models.catalog import CatalogModel
from models.demo import Role
from models.stack import StackConfig
from models.validation import parse
from ops.reference import reference

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_make_targets_that_are_named_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_berth_commands_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"\.venv/bin/berth ([a-z]+)", page.read_text()))
    for command in named:
        asked = [sys.executable, "-m", "ops", command, "--help"]
        assert subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_the_reference_is_what_the_declarations_say() -> None:
    written = (ROOT / "docs/reference.md").read_text()
    assert written == reference(), "write it again: .venv/bin/berth reference > docs/reference.md"


def test_the_first_change_of_the_readme_can_be_made() -> None:
    diff = re.search(r"```diff\n-(.*)\n\+(.*)\n```", (ROOT / "README.md").read_text())
    assert diff is not None
    assert diff[1] in (ROOT / "catalog/gemma-4-e2b-it.yaml").read_text().splitlines()


def test_the_examples_in_the_demos_page_are_valid() -> None:
    demo, model, replicas, roles = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs/demos.md").read_text(), re.DOTALL
    )
    sections = yaml.safe_load(demo)["config"]
    shipped = yaml.safe_load((ROOT / "Pulumi.frontdesk.yaml").read_text())["config"]
    assert sections == shipped
    plain = {key.removeprefix("berth:"): value for key, value in sections.items()}
    parse(StackConfig, plain, "berth:")
    parse(CatalogModel, yaml.safe_load(model), "catalog/my-model.yaml")
    for role in yaml.safe_load(roles)["roles"].values():
        parse(Role, role, "berth:demo.roles")
        assert (ROOT / "catalog" / f"{role['fallback']['model']}.yaml").is_file()
    for role in yaml.safe_load(replicas)["roles"].values():
        assert parse(Role, role, "berth:demo.roles").replicas


def test_the_example_in_the_images_page_is_valid_and_can_be_built() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/images.md").read_text(), re.DOTALL)
    sections = yaml.safe_load(example)["config"]
    builds = {
        name: parse(Build, given, f"berth:builds.{name}")
        for name, given in sections["berth:builds"].items()
    }
    planned = load_builds(ROOT, builds)
    assert sections["berth:images"]["vllm"].removeprefix("build:") in planned


def test_the_units_that_host_setup_names_are_those_of_the_shipped_layout() -> None:
    page = (ROOT / "docs/host-setup.md").read_text()
    layout = yaml.safe_load((ROOT / "Pulumi.xr7620.yaml").read_text())["config"]
    for name, instance in layout["berth:instances"].items():
        row = f"| `{name}.service` |"
        (line,) = [text for text in page.splitlines() if text.startswith(row)]
        assert f"{instance['http_port']}, {instance['metrics_port']}" in line
