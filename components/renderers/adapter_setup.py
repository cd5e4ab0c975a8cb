"""Shell scripts that bring the adapter up on a host, and take it away again.

Each may be run again after a kill at any point. Demos put their own files below `routes.d` and
`secrets.d`, each by a rename; the adapter reads them with the next request.
"""

from __future__ import annotations

import json

from components.renderers import adapter_unit, host_service
from components.renderers.adapter_container import DIRECTORY, LABEL, UID, USER
from components.renderers.host_setup import INSTALL, RELOAD, installed
from models.gateway import Adapter, Gateway
from models.host import Restart
from models.instance import LOOPBACK

VERSION = 1
"""Of the files' form; `gateway/config.py` reads just this one."""
MOST_BODY_MIB = 8
"""It takes texts alone, and decoded a body is many times its size."""
ANSWERS_WITHIN_S = 30
_ASK = """\
import sys, urllib.request as web
web.build_opener(web.ProxyHandler({})).open(sys.argv[1], timeout=5)
"""


def configuration(gateway: Gateway, adapter: Adapter) -> str:
    """`adapter.json`."""
    said = {
        "version": VERSION,
        "listen": f"{LOOPBACK}:{adapter.port}",
        "max_body_mib": min(gateway.max_body_mib, MOST_BODY_MIB),
    }
    return json.dumps(said, indent=1, sort_keys=True) + "\n"


def install(gateway: Gateway, adapter: Adapter, restart: Restart) -> str:
    """Its user, directories, configuration and unit; all is known before its container is."""
    lines = [
        INSTALL.rstrip(),
        f"getent group {USER} >/dev/null || groupadd --gid {UID} {USER}",
        f"getent passwd {USER} >/dev/null || useradd --uid {UID} --gid {USER} --no-create-home "
        f"--home-dir /nonexistent --shell /usr/sbin/nologin {USER}",
        f"install -d -m 0755 /etc/berth {DIRECTORY}",
        f"install -d -m 0750 -g {USER} {DIRECTORY}/routes.d {DIRECTORY}/secrets.d",
        installed(f"{DIRECTORY}/adapter.json", configuration(gateway, adapter)),
        installed(adapter_unit.PATH, adapter_unit.text(restart)),
        '[ -z "$changed" ] || reload=yes',
        f'[ "$(systemctl show -p NeedDaemonReload --value {adapter_unit.NAME})" != yes ] || '
        "reload=yes",
        RELOAD.rstrip(),
    ]
    return "reload=no\n" + "\n".join(lines) + "\n"


def unused() -> str:
    """Refuses while demos have routes there, so that nothing is ended before it is known."""
    return host_service.unused(DIRECTORY, adapter_unit.NAME)


def uninstall() -> str:
    """What `install` made gone. Refuses while demos have routes there."""
    return f"""\
{unused()}\
rm -f {adapter_unit.PATH}
rm -rf {DIRECTORY}
! getent passwd {USER} >/dev/null || userdel {USER}
! getent group {USER} >/dev/null || groupdel {USER}
reload=yes
{RELOAD}"""


def start(port: int) -> str:
    """The unit's environment, then the unit enabled, running and answering; reads what `preamble`
    sets. Containers that a killed run left behind are removed.

    Args:
        port: that it listens on.
    """
    return f"""\
printf '%s' "$ENVIRONMENT" > {adapter_unit.ENVIRONMENT}.new
mv -f {adapter_unit.ENVIRONMENT}.new {adapter_unit.ENVIRONMENT}
for c in $(docker ps -aq --no-trunc --filter label={LABEL}={adapter_unit.STEM}); do
  [ "$c" = "$CONTAINER_ID" ] || docker rm -f "$c" >/dev/null
done
systemctl enable --quiet {adapter_unit.NAME}
systemctl reset-failed {adapter_unit.NAME} 2>/dev/null || true
systemctl restart {adapter_unit.NAME} || true
{_answers(port)}"""


def _answers(port: int) -> str:
    url = f"http://{LOOPBACK}:{port}/health"
    return f"""\
answers() {{
  python3 -I -c '{_ASK}' {url} 2>/dev/null
}}
for i in $(seq {ANSWERS_WITHIN_S * 4}); do ! answers || exit 0; sleep 0.25; done
journalctl --unit {adapter_unit.NAME} --lines 8 --output cat --no-pager >&2 || true
echo "{adapter_unit.NAME} does not answer at {url}" >&2
exit 1
"""


def stop() -> str:
    """The unit stopped and disabled, its environment gone; its container stays as it is."""
    return f"""\
systemctl disable --quiet --now {adapter_unit.NAME} 2>/dev/null || true
systemctl reset-failed {adapter_unit.NAME} 2>/dev/null || true
rm -f {adapter_unit.ENVIRONMENT} {adapter_unit.ENVIRONMENT}.new
"""


def preamble(container: str, container_id: str) -> str:
    """Shell variables that `start` reads, once the container is known."""
    return f"CONTAINER_ID='{container_id}'\nENVIRONMENT='CONTAINER={container}\n'\n"
