"""The template unit, word for word, and what each instance adds to it."""

from __future__ import annotations

from components.renderers import unit
from tests.declarations import G0, G1, SECTIONS, changed, plan_of
from tests.renderers.engines.served import placed

PLAN = plan_of(SECTIONS)
WIDE = PLAN.instances[1]


def test_the_unit_passes_its_gate_starts_after_docker_restarts_and_stops_cleanly() -> None:
    assert unit.template(PLAN.hosts["alpha"]) == (
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
        "ExecStartPre=/usr/local/bin/berth-host --wait 20 gate %p@%i\n"
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


def test_how_often_it_is_started_again_is_the_hosts_to_say() -> None:
    restart = {"delay_s": 7, "burst": 3, "within_s": 60}
    text = unit.template(plan_of(changed("hosts/alpha/restart", restart)).hosts["alpha"])
    for line in ("RestartSec=7\n", "StartLimitBurst=3\n", "StartLimitIntervalSec=60\n"):
        assert line in text


def test_the_environment_names_container_gpus_and_stack_and_holds_no_secret() -> None:
    assert unit.environment(WIDE, "triton-wide-01-abc", "berth/dev") == (
        "CONTAINER=triton-wide-01-abc\n"
        "STOP_TIMEOUT_S=30\n"
        f"GPUS={G0},{G1}\n"
        "HOST_STACK=berth/dev\n"
        "LOADS=on-demand\n"
    )


def test_a_server_of_one_models_own_passes_the_gate_before_it_starts() -> None:
    placement = placed("vllm")
    text = unit.server(placement)
    assert "Description=architect and worker of demo shop: big by vllm (Berth)\n" in text
    assert "ExecStartPre=/usr/local/bin/berth-host --wait 20 gate shop-architect\n" in text
    assert "EnvironmentFile=/etc/berth/servers/shop-architect.env\n" in text
    assert "StartLimitBurst=10\n" in text
    assert unit.server_path(placement) == "/etc/systemd/system/shop-architect.service"


def test_a_server_says_that_it_holds_its_memory_for_life() -> None:
    assert "LOADS=for-life\n" in unit.server_environment(placed("vllm"), "c", "berth/dev")
