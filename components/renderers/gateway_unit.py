"""The gateway's systemd unit: an nginx of its own, beside whatever the distribution's does."""

from __future__ import annotations

from components.renderers.gateway_config import DIRECTORY, RUN
from models.host import Restart

STEM = "berth-gateway"
NAME = f"{STEM}.service"
PATH = f"/etc/systemd/system/{NAME}"
NGINX = f"/usr/sbin/nginx -e stderr -p {DIRECTORY}/ -c nginx.conf"
STOP_S = 20
"""How long streams may take to end when the unit stops, in seconds."""
LINES_PER_S = 100_000
"""Lines of log that the journal takes from the unit each second; its own bound is 10,000 in 30 s,
which an access log of 334 requests a second is above. It is by unit, and so holds for what nginx
sends to /dev/log as well (systemd.exec(5), journald.conf(5)). A 0, which turns journald's own bound
off, stands for that bound in a unit (systemd's issue 22034, pull request 17496)."""
MEMORY_MAX = "4G"
"""Beyond it the kernel ends one of nginx's workers, which nginx makes anew, and not an engine."""


def text(restart: Restart) -> str:
    """The unit.

    Its master is root, to read keys and certificates and to change its workers' user; it can do
    little else. Memory that is written and run (`MemoryDenyWriteExecute`) must stay allowed: that
    is how LuaJIT works.
    """
    run = RUN.removeprefix("/run/")
    return f"""\
# Written by Berth. A change made here by hand is undone by the next `pulumi up` that touches it.
[Unit]
Description=Gateway to the roles on this host (Berth)
Documentation=man:nginx(8)
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec={restart.within_s}
StartLimitBurst={restart.burst}

[Service]
Type=exec
ExecStartPre={NGINX} -t -q
ExecStart={NGINX}
ExecReload={NGINX} -t -q
ExecReload=/bin/kill -HUP $MAINPID
KillSignal=SIGQUIT
KillMode=mixed
TimeoutStopSec={STOP_S}
Restart=always
RestartSec={restart.delay_s}
LimitNOFILE=65536
MemoryMax={MEMORY_MAX}
OOMPolicy=continue
RuntimeDirectory={run}
SyslogIdentifier=berth-gateway
LogRateLimitIntervalSec=1s
LogRateLimitBurst={LINES_PER_S}
CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_SETUID CAP_SETGID CAP_CHOWN CAP_KILL
NoNewPrivileges=yes
PrivateTmp=yes
ProtectHome=yes
ProtectSystem=strict
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
"""
