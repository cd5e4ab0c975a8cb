"""The scripts that bring a server of one model's own up and take it away."""

from __future__ import annotations

import subprocess

import pytest

from components.renderers import server_setup
from tests.renderers.engines.served import placed

VLLM, TRTLLM = placed("vllm"), placed("trtllm-serve")
START = server_setup.preamble(VLLM, "c", "0123", "berth/dev") + server_setup.start(VLLM)


@pytest.mark.parametrize(
    "script",
    [
        START,
        server_setup.stop(VLLM),
        server_setup.install(TRTLLM),
        server_setup.uninstall(TRTLLM),
    ],
)
def test_every_script_is_one_that_sh_can_read(script: str) -> None:
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_gate_is_asked_before_anything_is_started() -> None:
    assert START.index("gate shop-architect\n") < START.index("systemctl restart shop-architect")


def test_systemd_reads_units_anew_only_where_the_unit_changed() -> None:
    script = server_setup.install(VLLM)
    changed = script.index('[ -z "$changed" ] || reload=yes')
    assert script.index("/etc/systemd/system/shop-architect.service") < changed
    assert changed < script.index("daemon-reload")


def test_a_servers_own_files_come_and_go_with_it() -> None:
    path = "/etc/berth/servers/shop-architect.yaml"
    assert f"install_file {path} " in server_setup.install(TRTLLM)
    removed = server_setup.uninstall(TRTLLM).splitlines()[0].split()
    assert removed == ["rm", "-f", "/etc/systemd/system/shop-architect.service", path]
