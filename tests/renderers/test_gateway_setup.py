"""The gateway's unit, and its scripts where a word matters; they are run in tests/gateway_nginx."""

from __future__ import annotations

import subprocess

import pytest

from components.renderers import gateway_setup, gateway_unit
from models.gateway import Gateway
from models.host import Restart

SETUP = gateway_setup.setup(Gateway(), Restart())


@pytest.mark.parametrize(
    "script",
    [SETUP, gateway_setup.start(), gateway_setup.teardown()],
    ids=["setup", "start", "teardown"],
)
def test_every_script_is_one_that_sh_can_read(script: str) -> None:
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_what_is_new_is_tried_before_anything_is_replaced() -> None:
    assert SETUP.index("nginx.conf -t -q") < SETUP.index("mv -f /etc/berth/gateway/nginx.conf.new")


def test_the_unit_restarts_within_limits_reloads_after_a_check_and_may_do_little_else() -> None:
    text = gateway_unit.text(Restart(delay_s=7, burst=3, within_s=60))
    nginx = "/usr/sbin/nginx -e stderr -p /etc/berth/gateway/ -c nginx.conf"
    for line in (
        "StartLimitIntervalSec=60",
        "StartLimitBurst=3",
        "Type=exec",
        f"ExecStartPre={nginx} -t -q",
        f"ExecStart={nginx}",
        f"ExecReload={nginx} -t -q",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "KillSignal=SIGQUIT",
        "Restart=always",
        "RestartSec=7",
        "RuntimeDirectory=berth-gateway",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_SETUID CAP_SETGID CAP_CHOWN CAP_KILL",
    ):
        assert line in text.splitlines(), line


def test_the_journal_drops_no_line_of_a_busy_gateways_access_log() -> None:
    lines = gateway_unit.text(Restart(delay_s=7, burst=3, within_s=60)).splitlines()
    found = dict(line.split("=", 1) for line in lines if line.startswith("LogRateLimit"))
    # A 0 is no "without limit" in a unit: it leaves journald's own, 10,000 lines in 30 s.
    assert found["LogRateLimitIntervalSec"] == "1s"
    assert int(found["LogRateLimitBurst"]) >= 50_000
