"""The adapter's systemd unit, and the environment from which it learns its container."""

from __future__ import annotations

from components.renderers.adapter_container import DIRECTORY
from models.host import Restart

STEM = "berth-adapter"
NAME = f"{STEM}.service"
PATH = f"/etc/systemd/system/{NAME}"
ENVIRONMENT = f"{DIRECTORY}/adapter.env"
STOP_S = 35
"""How long answers may take to end when the unit stops, in seconds: the service gives them 30."""


def text(restart: Restart) -> str:
    """The unit. It asks no gate: it takes no GPU."""
    return f"""\
# Written by Berth. A change made here by hand is undone by the next `pulumi up` that touches it.
[Unit]
Description=Adapter to engines without OpenAI's API (Berth)
Requires=docker.service
After=docker.service network-online.target
Wants=network-online.target
ConditionPathExists={ENVIRONMENT}
StartLimitIntervalSec={restart.within_s}
StartLimitBurst={restart.burst}

[Service]
Type=exec
EnvironmentFile={ENVIRONMENT}
ExecStart=/usr/bin/docker start --attach ${{CONTAINER}}
ExecStop=/usr/bin/docker stop --time {STOP_S} ${{CONTAINER}}
Restart=always
RestartSec={restart.delay_s}
TimeoutStartSec=60
TimeoutStopSec={STOP_S * 2}
SyslogIdentifier={STEM}

[Install]
WantedBy=multi-user.target
"""
