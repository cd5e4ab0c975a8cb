"""The tables as people edit them: a broken cell is named by file, line and column."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from config.releases import load_releases
from models.refusal import Refusal, Refusals
from models.releases.architecture import model_findings
from models.releases.driver import driver_findings
from models.releases.executor import executor_findings
from models.releases.tables import Releases

ROOT = Path(__file__).parents[2]
TABLES = ["triton.csv", "vllm.csv", "images.csv", "architectures.csv", "cuda.csv"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "releases", tmp_path / "releases")
    return tmp_path


def add(project: Path, table: str, row: str) -> int:
    """Append a row; its line number."""
    file = project / "releases" / table
    file.write_text(f"{file.read_text()}{row}\n")
    return len(file.read_text().splitlines())


def findings(image: str, releases: Releases) -> list[bool]:
    """What stands against a wide gemma4 on it, with driver 595."""
    found = [
        *model_findings(image, "gemma4", releases, at="", model="m"),
        *driver_findings(image, "595.58.03", releases, at="", host="h"),
        *executor_findings(image, 2, "ray", releases, at="", model="m"),
    ]
    return [finding.certain for finding in found]


def test_every_shipped_row_is_read() -> None:
    releases = load_releases(ROOT)
    rows = 0
    for table in TABLES:
        lines = (ROOT / "releases" / table).read_text().splitlines()
        rows += sum(not line.startswith("#") for line in lines) - 1
    read = (releases.triton, releases.vllm, releases.images, releases.architectures, releases.cuda)
    assert sum(map(len, read)) == rows


def test_the_rows_that_the_page_adds_are_all_that_is_needed(project: Path) -> None:
    page = (ROOT / "docs/releases.md").read_text()
    release, own = re.findall(r"```csv\n(.*)\n```", page)
    named = ["nvcr.io/nvidia/tritonserver:27.01-vllm-python-py3", "acme/tritonserver:26.04-gemma"]
    before = [findings(image, load_releases(project)) for image in named]
    add(project, "triton.csv", release)
    add(project, "images.csv", own)
    after = [findings(image, load_releases(project)) for image in named]
    assert before == [[False, False, False]] * 2
    assert after == [[], [True]]  # the second holds no ray, and says so


@pytest.mark.parametrize(
    ("table", "row", "column", "cause"),
    [
        ("triton.csv", "27.1,,,,,,,,,,,,x", "tag", "27.1"),
        ("triton.csv", "27.01,,new,,,,,,,,,,x", "vllm", "`new` is not a version"),
        ("triton.csv", "27.01,,,,,,perhaps,,,,,,x", "ray", "'yes' or 'no'"),
        ("triton.csv", "27.01,,,,,,,,,,,,", "source", "at least 1 character"),
        ("triton.csv", "26.08,,,,,,,,,,,,x", "tag", "has a row already"),
        ("vllm.csv", "1.0,1.0,over 5,,,x", "transformers", "`over 5` is not a version range"),
        ("images.csv", "mine,,,,,,,,,x", "reference", "mine"),
        ("images.csv", "mine:1,,,,,,thirteen,,,x", "cuda", "thirteen"),
        ("architectures.csv", ",,,,,,,x", "model_type", "at least 1 character"),
        ("cuda.csv", "14,new,,x", "floor", "valid integer"),
        ("cuda.csv", "14,600,570;580,x", "forward", "valid integer"),
    ],
)
def test_a_broken_cell_is_named_by_file_line_and_column(
    project: Path, table: str, row: str, column: str, cause: str
) -> None:
    line = add(project, table, row)
    with pytest.raises(Refusals) as refused:
        load_releases(project)
    assert f"releases/{table}:{line}: {column}" in str(refused.value)
    assert cause in str(refused.value)


def test_every_broken_row_of_every_table_is_told_at_once(project: Path) -> None:
    first = add(project, "triton.csv", "27.01,new,,,,,,,,,,,x")
    second = add(project, "cuda.csv", "14,none,,x")
    with pytest.raises(Refusals) as refused:
        load_releases(project)
    assert f"releases/triton.csv:{first}" in str(refused.value)
    assert f"releases/cuda.csv:{second}" in str(refused.value)


@pytest.mark.parametrize("row", ["27.01,2.77.0", "27.01" + "," * 20])
def test_a_row_with_missing_or_extra_cells_is_named_by_its_line(project: Path, row: str) -> None:
    line = add(project, "triton.csv", row)
    with pytest.raises(Refusal, match="cells in a table of 13 columns") as refused:
        load_releases(project)
    assert f"releases/triton.csv:{line}" in str(refused.value)


def test_a_column_by_another_name_is_named_with_the_right_ones(project: Path) -> None:
    file = project / "releases/cuda.csv"
    file.write_text(file.read_text().replace("cuda,floor", "cuda,minimum"))
    with pytest.raises(Refusal, match="the columns are cuda, minimum") as refused:
        load_releases(project)
    assert "cuda, floor, forward, source" in str(refused.value)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_is_not_there_or_no_text_is_named(project: Path, table: str) -> None:
    file = project / "releases" / table
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Refusal, match=re.escape(f"releases/{table}: not readable as UTF-8")):
        load_releases(project)
    file.unlink()
    with pytest.raises(Refusal, match=re.escape(f"releases/{table}: no such file")):
        load_releases(project)


def test_a_quote_that_does_not_end_is_named_by_its_line(project: Path) -> None:
    line = add(project, "cuda.csv", '14,600,,"NVIDIA')
    with pytest.raises(Refusal, match=f"releases/cuda.csv:{line}: not readable as CSV"):
        load_releases(project)


def test_releases_are_in_the_order_of_their_months_wherever_the_row_stands(project: Path) -> None:
    add(project, "triton.csv", "24.12,2.53.0,,,,,,,,,,,rel-24-12")
    assert load_releases(project).triton[0].tag == "24.12"
