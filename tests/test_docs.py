"""The documents say what is true: links lead somewhere, commands exist, examples are valid."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from config.builds import load_builds
from config.project import load_plan
from models.build import Build
from models.catalog import CatalogModel
from models.demo import Role
from models.engine import TRAITS
from models.gateway import Gateway
from models.stack import StackConfig
from models.validation import parse
from ops.__main__ import app
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
    named = set(re.findall(r"(?:\.venv/bin/|`)berth ([a-z]+)", page.read_text()))
    known = {each.callback.__name__ for each in app.registered_commands if each.callback}
    assert named <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_words_of_the_hosts_program_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"`(?:sudo )?berth-host ([a-z]+)", page.read_text()))
    asked = [sys.executable, "-m", "host", "--help"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    assert named <= set(re.findall(r"[a-z]+", said.stdout))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_the_pages_declare_can_be_declared(page: Path) -> None:
    for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        said = yaml.safe_load(text)
        at = f"{page.name}: "
        if "config" in said:
            # An excerpt need not say what is served, nor where.
            whole = yaml.safe_load((ROOT / "Pulumi.frontdesk.yaml").read_text())["config"]
            sections = whole | said["config"]
            plain = {key.removeprefix("berth:"): value for key, value in sections.items()}
            parse(StackConfig, plain, at)
        elif "gateway" in said:
            parse(Gateway, said["gateway"], at)
        elif "roles" in said:
            for role in said["roles"].values():
                parse(Role, role, at)
        else:
            parse(CatalogModel, said, at)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_in_the_pages_is_python(page: Path) -> None:
    for text in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        compile(text, str(page), "exec")


def test_each_engine_has_a_row_in_both_tables_of_its_page() -> None:
    page = (ROOT / "docs/engines.md").read_text()
    for engine in TRAITS:
        rows = re.findall(rf"^\|[^|]*`{engine}`[^|]*\|", page, re.MULTILINE)
        assert len(rows) == 2, engine


def test_the_reference_is_what_the_declarations_say() -> None:
    written = (ROOT / "docs/reference.md").read_text()
    assert written == reference(), "write it again: .venv/bin/berth reference > docs/reference.md"


def test_the_first_change_of_the_readme_gives_the_role_a_server_of_its_own() -> None:
    diff = re.search(r"```diff\n-(.*)\n\+(.*)\n```", (ROOT / "README.md").read_text())
    assert diff is not None
    stack = (ROOT / "Pulumi.dev.yaml").read_text()
    assert diff[1] in stack.splitlines()
    sections = yaml.safe_load(stack.replace(diff[1], diff[2]))["config"]
    plain = {key.removeprefix("berth:"): value for key, value in sections.items()}
    role = load_plan(ROOT, "dev", plain).roles["auditor"]
    assert (role.engine, role.served_by, role.endpoint) == (
        "vllm", "reference-auditor", "http://127.0.0.1:8202/v1",
    )  # fmt: skip
    assert all(word in (ROOT / "README.md").read_text() for word in (role.served_by, role.endpoint))


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
