"""The systemd template unit of all Triton instances on a host."""

from __future__ import annotations

from components.renderers import berth_host
from models.host import Host
from models.plan import PlannedInstance

TEMPLATE_PATH = "/etc/systemd/system/triton@.service"
GATE_WAIT_S = 20
"""How long a start waits for a ledger that is in use, within `TimeoutStartSec`, in seconds."""


def template(host: Host) -> str:
    """The unit. Its gate comes before its server, so a start by hand meets it too."""
    restart = host.restart
    return f"""\
# Written by Berth. A change made here by hand is undone by the next `pulumi up` that touches it.
[Unit]
Description=Triton Inference Server %i (Berth)
Documentation=https://github.com/triton-inference-server/server
Requires=docker.service
After=docker.service network-online.target
Wants=network-online.target
ConditionPathExists=/etc/berth/instances/%i.env
StartLimitIntervalSec={restart.within_s}
StartLimitBurst={restart.burst}

[Service]
Type=exec
EnvironmentFile=/etc/berth/instances/%i.env
ExecStartPre={berth_host.PATH} --wait {GATE_WAIT_S} gate %p@%i
ExecStart=/usr/bin/docker start --attach ${{CONTAINER}}
ExecStop=/usr/bin/docker stop --time ${{STOP_TIMEOUT_S}} ${{CONTAINER}}
Restart=always
RestartSec={restart.delay_s}
TimeoutStartSec=60
TimeoutStopSec=300
SyslogIdentifier=triton@%i

[Install]
WantedBy=multi-user.target
"""


def environment(instance: PlannedInstance, container: str, host_stack: str) -> str:
    """The unit instance's environment file; its gate reads it too. It holds no secret.

    Args:
        instance: the instance.
        container: name of its container.
        host_stack: `project/stack` that declares it.
    """
    gpus = ",".join(gpu.uuid for gpu in instance.gpus)
    return (
        f"CONTAINER={container}\n"
        f"STOP_TIMEOUT_S={instance.declared.stop_timeout_s}\n"
        f"GPUS={gpus}\n"
        f"HOST_STACK={host_stack}\n"
        "LOADS=on-demand\n"
    )
