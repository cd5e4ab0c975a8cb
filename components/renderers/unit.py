"""The systemd units: one template for a host's Triton instances, one unit for each other server.

Every unit asks the gate before its server starts, so a start by hand meets it too.
"""

from __future__ import annotations

from components.renderers import berth_host
from models.host import Host
from models.plan import Placement, PlannedInstance

UNITS = "/etc/systemd/system"
TEMPLATE_PATH = f"{UNITS}/triton@.service"
GATE_WAIT_S = 20
"""How long a start waits for a ledger that is in use, within `TimeoutStartSec`, in seconds."""
STOP_TIMEOUT_S = 30
"""How long a server of one model's own may take to end its requests, in seconds."""


def template(host: Host) -> str:
    """The unit of all Triton instances."""
    return _text(
        host,
        description="Triton Inference Server %i (Berth)",
        documentation="https://github.com/triton-inference-server/server",
        environment_file="/etc/berth/instances/%i.env",
        name="%p@%i",
        log_name="triton@%i",
    )


def server(placement: Placement) -> str:
    """The unit of a server with one model for life."""
    assert placement.server is not None  # noqa: S101 - only such a load has a unit of its own
    planned = placement.server
    roles = " and ".join(sorted(placement.roles))
    return _text(
        placement.instance.host,
        description=f"{roles} of demo {placement.demo}: {placement.model} by {placement.engine}"
        " (Berth)",
        documentation="",
        environment_file=planned.environment_file,
        name=planned.name,
        log_name=planned.name,
    )


def server_path(placement: Placement) -> str:
    """Where its unit lies."""
    assert placement.server is not None  # noqa: S101 - only such a load has a unit of its own
    return f"{UNITS}/{placement.server.unit}"


def _text(
    host: Host,
    *,
    description: str,
    documentation: str,
    environment_file: str,
    name: str,
    log_name: str,
) -> str:
    restart = host.restart
    described = f"Description={description}\n"
    if documentation:
        described += f"Documentation={documentation}\n"
    return f"""\
# Written by Berth. A change made here by hand is undone by the next `pulumi up` that touches it.
[Unit]
{described}\
Requires=docker.service
After=docker.service network-online.target
Wants=network-online.target
ConditionPathExists={environment_file}
StartLimitIntervalSec={restart.within_s}
StartLimitBurst={restart.burst}

[Service]
Type=exec
EnvironmentFile={environment_file}
ExecStartPre={berth_host.PATH} --wait {GATE_WAIT_S} gate {name}
ExecStart=/usr/bin/docker start --attach ${{CONTAINER}}
ExecStop=/usr/bin/docker stop --time ${{STOP_TIMEOUT_S}} ${{CONTAINER}}
Restart=always
RestartSec={restart.delay_s}
TimeoutStartSec=60
TimeoutStopSec=300
SyslogIdentifier={log_name}

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


def server_environment(placement: Placement, container: str, host_stack: str) -> str:
    """As `environment`, for a server that takes its memory at the start and holds it for life."""
    gpus = ",".join(gpu.uuid for gpu in placement.instance.gpus)
    return (
        f"CONTAINER={container}\n"
        f"STOP_TIMEOUT_S={STOP_TIMEOUT_S}\n"
        f"GPUS={gpus}\n"
        f"HOST_STACK={host_stack}\n"
        "LOADS=for-life\n"
    )
