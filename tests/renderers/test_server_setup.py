"""The scripts that bring a server of one model's own up and take it away."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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


SAYS = """#!/bin/sh
case "$1" in
ps) printf '%s\\n' {there} ;;
inspect) echo {runs} ;;
reset-failed) ;;
is-enabled) {enabled} ;;
*) echo "$(basename "$0") $*" >> {done} ;;
esac
"""


def prepared(place: Path, there: str, *, runs: bool, enabled: bool = True) -> list[str]:
    """What is done to units and containers of a host.

    Args:
        there: ids of the containers with the server's label.
        runs: whether its own one does.
        enabled: whether its unit is.
    """
    done = place / "done"
    done.touch()
    for name in ("docker", "systemctl"):
        known = {"runs": str(runs).lower(), "enabled": str(enabled).lower()}
        says = SAYS.format(there=there, done=done, **known)
        (place / name).write_text(says)
        (place / name).chmod(0o755)
    (place / "etc/servers").mkdir(parents=True)
    subprocess.run(
        ["sh", "-eu"],
        input=PREPARE.replace("/etc/berth", f"{place}/etc"),
        text=True,
        check=True,
        env={"PATH": f"{place}:{os.environ['PATH']}"},
    )
    assert "CONTAINER=c\n" in (place / "etc/servers/shop-architect.env").read_text()
    return done.read_text().splitlines()


def test_what_a_killed_run_left_goes_once_its_unit_does_not_run_it_any_more(
    tmp_path: Path,
) -> None:
    gone = prepared(tmp_path, "0123 4567 89ab", runs=False)
    assert gone == ["systemctl stop shop-architect.service", "docker rm -f 4567 89ab"]


def test_its_own_container_goes_on_while_others_are_removed(tmp_path: Path) -> None:
    assert prepared(tmp_path, "4567 0123", runs=True) == ["docker rm -f 4567"]


@pytest.mark.parametrize("there", ["", "0123"])
def test_where_nothing_was_left_its_unit_is_not_touched(tmp_path: Path, there: str) -> None:
    assert "label=berth.instance=shop-architect" in PREPARE
    assert prepared(tmp_path, there, runs=False) == []


def test_its_unit_is_enabled_before_it_is_started(tmp_path: Path) -> None:
    done = prepared(tmp_path, "", runs=False, enabled=False)
    assert done == ["systemctl enable --quiet shop-architect.service"]


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
