"""The scripts that a host runs: exact where a word matters, and run by a real shell."""

from __future__ import annotations

import subprocess

import pytest

from components.renderers import host_setup, unit
from tests.declarations import SECTIONS, plan_of

PLAN = plan_of(SECTIONS)
ALPHA = [instance for instance in PLAN.instances if instance.host_name == "alpha"]
WIDE = PLAN.instances[1]


def test_the_unit_starts_after_docker_restarts_and_stops_cleanly() -> None:
    assert unit.TEMPLATE == (
        "# Written by Berth. A change made here by hand is undone by the next `pulumi up` "
        "that touches it.\n"
        "[Unit]\n"
        "Description=Triton Inference Server %i (Berth)\n"
        "Documentation=https://github.com/triton-inference-server/server\n"
        "Requires=docker.service\n"
        "After=docker.service network-online.target\n"
        "Wants=network-online.target\n"
        "ConditionPathExists=/etc/berth/instances/%i.env\n"
        "StartLimitIntervalSec=300\n"
        "StartLimitBurst=10\n"
        "\n"
        "[Service]\n"
        "Type=exec\n"
        "EnvironmentFile=/etc/berth/instances/%i.env\n"
        "ExecStart=/usr/bin/docker start --attach ${CONTAINER}\n"
        "ExecStop=/usr/bin/docker stop --time ${STOP_TIMEOUT_S} ${CONTAINER}\n"
        "Restart=always\n"
        "RestartSec=2\n"
        "TimeoutStartSec=60\n"
        "TimeoutStopSec=300\n"
        "SyslogIdentifier=triton@%i\n"
        "\n"
        "[Install]\n"
        "WantedBy=multi-user.target\n"
    )


def test_the_environment_names_the_container_and_holds_no_secret() -> None:
    assert unit.environment(WIDE, "triton-wide-01-abc") == (
        "CONTAINER=triton-wide-01-abc\nSTOP_TIMEOUT_S=30\n"
    )


@pytest.mark.parametrize(
    "script",
    [
        host_setup.setup(PLAN.hosts["alpha"], ALPHA),
        host_setup.teardown(PLAN.hosts["alpha"]),
        host_setup.preamble(WIDE, "triton-wide-01-abc", "0123") + host_setup.start_instance(WIDE),
        host_setup.stop_instance(WIDE),
    ],
    ids=["setup", "teardown", "start", "stop"],
)
def test_every_script_is_one_that_sh_can_read(script: str) -> None:
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_key_is_made_once_for_each_instance_and_readable_by_root_alone() -> None:
    script = host_setup.setup(PLAN.hosts["alpha"], ALPHA)
    for name in ("0", "wide-01"):
        assert f"[ -s /etc/berth/instances/{name}.key ] || (umask 0377;" in script
    assert "b0.key" not in script


def test_a_host_that_still_holds_a_demos_entries_is_not_taken_down() -> None:
    script = host_setup.teardown(PLAN.hosts["alpha"])
    assert script.index("exit 1") < script.index("rm -f")


def test_root_needs_no_sudo() -> None:
    assert host_setup.from_stdin("root") == "/bin/sh -eu"
    assert (
        host_setup.as_argument("berth", "echo 'a'") == "sudo -n /bin/sh -euc 'echo '\"'\"'a'\"'\"''"
    )
