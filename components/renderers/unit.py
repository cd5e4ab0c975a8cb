"""The systemd template unit of all Triton instances on a host."""

from __future__ import annotations

from models.plan import PlannedInstance

TEMPLATE_PATH = "/etc/systemd/system/triton@.service"

TEMPLATE = """\
# Written by Berth. A change made here by hand is undone by the next `pulumi up` that touches it.
[Unit]
Description=Triton Inference Server %i (Berth)
Documentation=https://github.com/triton-inference-server/server
Requires=docker.service
After=docker.service network-online.target
Wants=network-online.target
ConditionPathExists=/etc/berth/instances/%i.env
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=exec
EnvironmentFile=/etc/berth/instances/%i.env
ExecStart=/usr/bin/docker start --attach ${CONTAINER}
ExecStop=/usr/bin/docker stop --time ${STOP_TIMEOUT_S} ${CONTAINER}
Restart=always
RestartSec=2
TimeoutStartSec=60
TimeoutStopSec=300
SyslogIdentifier=triton@%i

[Install]
WantedBy=multi-user.target
"""


def environment(instance: PlannedInstance, container: str) -> str:
    """The unit instance's environment file. It holds no secret."""
    return f"CONTAINER={container}\nSTOP_TIMEOUT_S={instance.declared.stop_timeout_s}\n"
