"""The scripts that bring a server of one model's own up and take it away."""

from __future__ import annotations

import subprocess

import pytest

from components.renderers import server_setup
from tests.renderers.engines.served import placed

VLLM, TRTLLM = placed("vllm"), placed("trtllm-serve")
PREPARE = server_setup.prepare(VLLM, "c", "0123", "berth/dev")


@pytest.mark.parametrize(
    "script",
    [
        PREPARE,
        server_setup.install(TRTLLM),
        server_setup.uninstall(TRTLLM),
    ],
)
def test_every_script_is_one_that_sh_can_read(script: str) -> None:
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_killed_run_left_goes_and_its_own_container_stays() -> None:
    assert "CONTAINER=c\n" in PREPARE
    assert "label=berth.instance=shop-architect" in PREPARE
    assert """[ "$c" = '0123' ] || docker rm -f""" in PREPARE
    assert "systemctl" not in PREPARE


def test_systemd_reads_units_anew_only_where_the_unit_changed() -> None:
    script = server_setup.install(VLLM)
    changed = script.index('[ -z "$changed" ] || reload=yes')
    assert script.index("/etc/systemd/system/shop-architect.service") < changed
    assert changed < script.index("daemon-reload")


def test_a_servers_own_files_come_and_go_with_it() -> None:
    path = "/etc/berth/servers/shop-architect.yaml"
    assert f"install_file {path} " in server_setup.install(TRTLLM)
    script = server_setup.uninstall(TRTLLM)
    assert script.index("disable --quiet --now shop-architect.service") < script.index("rm -f")
    (removed,) = [line.split() for line in script.splitlines() if line.startswith("rm -f")]
    env = "/etc/berth/servers/shop-architect.env"
    assert removed == ["rm", "-f", env, "/etc/systemd/system/shop-architect.service", path]
