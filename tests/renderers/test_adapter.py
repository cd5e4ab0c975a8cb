"""The adapter's unit, container and scripts, where a word matters."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

from components.renderers import adapter_container, adapter_setup, adapter_unit, host_service
from gateway import config
from models.gateway import Adapter, Gateway
from models.host import Restart

ROOT = Path(__file__).parents[2]
DECLARED = Adapter(image="adapter:1", port=8311)
GATEWAY = Gateway(max_body_mib=40)
INSTALL = adapter_setup.install(GATEWAY, DECLARED, Restart())
START = adapter_setup.preamble("berth-adapter-1a2b3c4", "0a" * 32) + adapter_setup.start(8311)


@pytest.mark.parametrize(
    "script",
    [
        INSTALL,
        adapter_setup.uninstall(),
        adapter_setup.unused(),
        START,
        adapter_setup.stop(),
        host_service.noted("berth-adapter", 8311, "dev"),
        host_service.forgotten("berth-adapter"),
    ],
    ids=["install", "uninstall", "unused", "start", "stop", "noted", "forgotten"],
)
def test_every_script_is_one_that_sh_can_read(script: str) -> None:
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_what_the_host_writes_is_what_the_service_reads(tmp_path: Path) -> None:
    (tmp_path / "adapter.json").write_text(adapter_setup.configuration(GATEWAY, DECLARED))
    said = config.read_adapter(tmp_path)
    assert (said.listen, said.max_body_mib) == ("127.0.0.1:8311", 8)
    for folder in (config.ROUTES, config.SECRETS):
        assert f"-g berth-adapter {adapter_container.DIRECTORY}/routes.d" in INSTALL
        assert f"{adapter_container.DIRECTORY}/{folder}" in INSTALL


def test_it_runs_in_the_image_as_it_is_started() -> None:
    dockerfile = (ROOT / "gateway/Dockerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", dockerfile, re.MULTILINE)
    (command,) = re.findall(r"^CMD (.*)$", dockerfile, re.MULTILINE)
    (user,) = re.findall(r"^USER (.*)$", dockerfile, re.MULTILINE)
    assert tuple(json.loads(entry)) == adapter_container.ENTRY
    assert tuple(json.loads(command)) == adapter_container.COMMAND
    assert user == f"{adapter_container.UID}:{adapter_container.UID}"


def test_the_image_holds_every_module_that_the_service_imports() -> None:
    copied = {
        file
        for line in re.findall(r"^COPY (.*)$", (ROOT / "gateway/Dockerfile").read_text(), re.M)
        for pattern in line.split()[:-1]
        for file in ROOT.glob(pattern)
        if file.suffix == ".py"
    }
    assert ROOT / "gateway/__main__.py" in copied
    for file in copied:
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            path = ROOT / node.module.replace(".", "/")
            if node.module.split(".")[0] in ("models", "engines", "gateway"):
                held = {path.with_suffix(".py"), path / "__init__.py"} & copied
                assert held, f"{file.name} imports {node.module}"


def test_its_packages_are_those_of_the_whole_lock_in_the_same_versions() -> None:
    pins = re.compile(r"^([a-z0-9-]+)==(\S+) ", re.MULTILINE)
    whole = dict(pins.findall((ROOT / "requirements.lock").read_text()))
    own = dict(pins.findall((ROOT / "gateway/requirements.lock").read_text()))
    assert set((ROOT / "gateway/requirements.in").read_text().split()) <= own.keys()
    assert own.items() <= whole.items()


def test_its_unit_restarts_within_limits_and_gives_answers_time_to_end() -> None:
    text = adapter_unit.text(Restart(delay_s=7, burst=3, within_s=60)).splitlines()
    for line in (
        "StartLimitIntervalSec=60",
        "StartLimitBurst=3",
        "RestartSec=7",
        "Restart=always",
        "Requires=docker.service",
        "ConditionPathExists=/etc/berth/adapter/adapter.env",
        "ExecStart=/usr/bin/docker start --attach ${CONTAINER}",
        "ExecStop=/usr/bin/docker stop --time 35 ${CONTAINER}",
    ):
        assert line in text, line


def test_a_note_of_a_service_names_its_unit_port_and_stack() -> None:
    script = host_service.noted("berth-adapter", 8311, "dev")
    (line,) = [line for line in script.splitlines() if line.startswith("{")]
    assert json.loads(line) == {"unit": "berth-adapter.service", "port": 8311, "stack": "dev"}
