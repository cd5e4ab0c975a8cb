"""The gateway's page says what the gateway does."""

from __future__ import annotations

import json
import re
from pathlib import Path

from models.gateway import Gateway

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/gateway.md").read_text()
FILES = (ROOT / "components/renderers/gateway").glob("*.lua")
LUA = {file.stem: file.read_text() for file in FILES}
CODE = r"\"([a-z]+(?:_[a-z]+)+)\""


def row(text: str) -> list[str]:
    """Cells of the table's row that begins with a text."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {text}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def section(begin: str, end: str) -> str:
    return PAGE[PAGE.index(begin) : PAGE.index(end)]


def codes(text: str) -> set[str]:
    """Codes in a table's first columns; the last one says what they mean."""
    rows = [line.strip("|").split("|")[:-1] for line in text.splitlines() if line.startswith("| ")]
    cells = " ".join(" ".join(row) for row in rows)
    return set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", cells))


def test_each_code_of_the_gateways_own_errors_has_a_row_and_each_row_a_code() -> None:
    used = set(re.findall(rf"code = {CODE}", LUA["access"] + LUA["refuse"]))
    chosen = LUA["refuse"].split("code = role.state")[1].split("retry_after_s")[0]
    used |= set(re.findall(CODE, chosen))
    assert codes(section("The gateway's own:", "HTTP that cannot be read")) == used


def test_each_error_in_a_stream_has_a_row_and_each_row_an_error() -> None:
    used = set(re.findall(rf"failure\(state, [A-Z]+, {CODE}\)", LUA["answer"]))
    table = section("Once a stream has begun", "An engine's own error event")
    assert codes(table) == used


def test_each_code_of_the_adapters_errors_has_a_row_and_each_row_a_code() -> None:
    files = [*(ROOT / "gateway").glob("*.py"), *(ROOT / "engines").glob("*.py")]
    used = set(re.findall(rf"code={CODE}", " ".join(file.read_text() for file in files)))
    gateways = codes(section("The gateway's own:", "HTTP that cannot be read"))
    told = codes(section("Those of the adapter:", "Once a stream has begun"))
    assert told <= used
    assert used - gateways <= told


def test_each_status_of_the_errors_is_answered_with_its_code() -> None:
    own = re.findall(r"refuse\.send\((\d+), \{(.*?)\}\)", LUA["access"], re.DOTALL)
    sent = {(status, code) for status, body in own for code in re.findall(rf"code = {CODE}", body)}
    sent |= set(re.findall(rf"\[(\d+)\] = \{{[^}}]*code = {CODE}", LUA["refuse"]))
    rows = re.findall(r"^\| (\d+) \| `(\w+)`", section("The gateway's own", "Those of"), re.M)
    assert {each for each in rows if each[0] != "503"} == sent


def test_the_paths_are_those_that_are_let_through() -> None:
    table = section("| path | does |", "Nothing else exists")
    for path in re.findall(r"\[\"(/v1/[a-z/]+)\"\]", LUA["access"]):
        assert f"`POST {path}`" in table
    for operation in re.findall(r"\[\"(/[a-z_]+)\"\] = \{ \"", LUA["access"]):
        assert f"{operation}`" in table
    offered = set(re.findall(r"(?:…|/ROLE)(/[a-z_]+)`", table)) - {"/v2/health/ready"}
    assert offered == set(re.findall(r"\[\"(/[a-z_]+)\"\] = \{ \"", LUA["access"]))


def test_the_line_of_the_log_has_the_fields_that_are_written() -> None:
    (line,) = re.findall(r"^\{\"time\".*$", PAGE, re.M)
    written = re.findall(r"[{,]\"(\w+)\":", LUA["journal"])
    assert list(json.loads(line)) == written


def test_the_model_in_the_list_has_the_fields_that_are_written() -> None:
    (line,) = re.findall(r"^\{\"id\".*$", PAGE, re.M)
    written = re.findall(r"[{,]\"(\w+)\":", LUA["models"].split("function M.one")[0])
    assert re.findall(r"\"(\w+)\":", line) == written


def test_limits_are_the_defaults() -> None:
    declared = Gateway()
    assert row("body |")[1] == f"{declared.max_body_mib} MiB"
    assert row("requests under way, of one key")[1] == str(declared.connections_per_key)
    assert row("one answer")[1] == f"{declared.timeout_s} s"
    assert row("silence of an engine in a stream")[1] == f"{declared.silence_s} s"
    assert f"`drain_s` ({declared.drain_s} s)" in PAGE
